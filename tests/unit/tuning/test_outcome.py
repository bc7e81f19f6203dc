"""What termination messages say of a point."""

from decimal import Decimal
from typing import Any

import pytest

from kopeck.tuning.outcome import Infeasible, Measured, failure, skipped_after, success
from tests.unit.tuning.builders import a_point, measured, out_of_memory


def a_report(**facts: Any) -> dict[str, Any]:
    return {"stepSeconds": 0.5, "peakResidentBytes": 100} | facts


def succeeded(*reports: dict[str, Any], dollars_per_hour: str | None = None) -> Measured:
    dollars = None if dollars_per_hour is None else Decimal(dollars_per_hour)
    outcome = success(a_point(), reports, global_batch=16, dollars_per_hour=dollars)
    assert isinstance(outcome, Measured)
    return outcome


def test_the_slowest_worker_and_the_one_of_most_memory_count() -> None:
    one = a_report(peakResidentBytes=200)
    outcome = succeeded(one, a_report(stepSeconds=0.75))
    assert (outcome.step_seconds, outcome.peak_bytes) == (0.75, 200)


def test_memory_is_that_of_the_gpu_where_there_is_one() -> None:
    on_gpu = succeeded(a_report(peakDeviceBytes=7))
    assert (on_gpu.peak_bytes, on_gpu.memory) == (7, "device")
    on_cpu = succeeded(a_report())
    assert (on_cpu.peak_bytes, on_cpu.memory) == (100, "resident")


def test_dollars_are_the_rate_of_a_step_over_its_samples() -> None:
    assert succeeded(a_report(), dollars_per_hour="57.6").dollars_per_sample == Decimal("0.0005")


def test_without_a_price_dollars_are_unknown_and_never_zero() -> None:
    assert succeeded(a_report()).dollars_per_sample is None


@pytest.mark.parametrize(
    "reports",
    [
        [{"peakResidentBytes": 1}],
        [{"stepSeconds": 1.0}],
        [a_report(), {}],
    ],
)
def test_what_a_worker_does_not_say_is_not_made_up(reports: list[dict[str, Any]]) -> None:
    outcome = success(a_point(), reports, global_batch=16, dollars_per_hour=None)
    assert isinstance(outcome, Infeasible)
    assert outcome.kind == "failed"


@pytest.mark.parametrize(
    ("exit_code", "report"),
    [
        (137, {"message": "rank 1 was ended by SIGKILL", "firstFailure": {"signal": "SIGKILL"}}),
        (-9, {}),
        (1, {"message": "OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"}),
        (1, {"message": "MemoryError: "}),
        (1, {"message": "_ArrayMemoryError: Unable to allocate 7.28 TiB for an array"}),
        (
            1,
            {
                "message": "RuntimeError: [enforce fail at alloc_cpu.cpp:127] err == 0."
                " DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes."
            },
        ),
        (1, {"message": "OSError: [Errno 12] Cannot allocate memory"}),
        (1, {"message": "DistBackendError: Cuda failure 2 'out of memory'"}),
        (1, {"message": "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling"}),
    ],
)
def test_every_way_to_run_out_of_memory_is_known_as_one(
    exit_code: int, report: dict[str, Any]
) -> None:
    assert failure(a_point(), exit_code, report).kind == "out-of-memory"


@pytest.mark.parametrize(
    ("exit_code", "report", "reason"),
    [
        (1, {"message": "ValueError: the labels are gone"}, "ValueError: the labels are gone"),
        (139, {"message": "m", "firstFailure": {"signal": "SIGSEGV"}}, "m"),
        (-15, {}, "the launcher ended with -15"),
    ],
)
def test_other_failures_say_what_failed(
    exit_code: int, report: dict[str, Any], reason: str
) -> None:
    outcome = failure(a_point(), exit_code, report)
    assert (outcome.kind, outcome.reason) == ("failed", reason)


def test_after_a_lack_of_memory_larger_micro_batches_of_the_same_activations_are_skipped() -> None:
    earlier = [measured(point=a_point(2)), out_of_memory(a_point(4))]
    skipped = skipped_after(a_point(8), earlier)
    assert skipped is not None
    assert skipped.reason == "skipped: 4 ran out of memory"
    assert skipped_after(a_point(3), earlier) is None
    assert skipped_after(a_point(8, mode="full"), earlier) is None


def test_nothing_is_skipped_after_another_failure() -> None:
    failed = failure(a_point(4), 1, {"message": "ValueError"})
    assert skipped_after(a_point(8), [failed]) is None
