"""What the operator reads of a worker."""

from typing import Any

from kopeck_exporter.names import PHASES
from kopeck_exporter.progress import progress
from kopeck_exporter.report import read_report
from kopeck_exporter.worker import STALE_SECONDS, Worker
from tests.unit.exporter.reporting import A_DECISION, a_message


def received(*messages: dict[str, Any], processes: int = 2) -> Worker:
    worker = Worker(processes)
    for facts in messages:
        report = read_report(a_message(**facts))
        worker.receive(report, report.rank, now_seconds=100.0)
    return worker


def test_before_the_first_report_it_says_whose_it_is_and_no_more() -> None:
    assert progress(3, Worker(2), 0.0) == {"v": 1, "worker": 3, "ranks": []}


def test_two_ranks_become_one_worker() -> None:
    worker = received(
        {
            "rank": 0,
            "step": 12,
            "job_samples": 384,
            "loss": 1.5,
            "checkpoint_step": 10,
            "checkpoint_request": "before-upgrade",
            "compile_decision": A_DECISION,
            "phase_seconds": dict.fromkeys(PHASES, 1.0) | {"compute": 2.0, "idle": 0.0},
        },
        {"rank": 1, "step": 11, "job_samples": 352, "step_seconds": 0.5, "compile_seconds": 4.0}
        | {"phase_seconds": dict.fromkeys(PHASES, 1.0) | {"idle": 0.0}},
    )
    assert progress(3, worker, now_seconds=101.25) == {
        "v": 1,
        "worker": 3,
        "ranks": [
            {"rank": 0, "stepSeconds": 0.41, "ageSeconds": 1.25},
            {"rank": 1, "stepSeconds": 0.5, "ageSeconds": 1.25},
        ],
        "step": 12,
        "samples": 384,
        "phaseSeconds": dict.fromkeys(PHASES, 1.0) | {"compute": 1.5, "idle": 0.0},
        "samplesPerSecond": 39.0,
        "mfu": 0.5,
        "loss": 1.5,
        "checkpointStep": 10,
        "checkpointRequest": "before-upgrade",
        "compileMode": "default",
        "compileDecision": "compile mode reduce-overhead for 1000 steps",
        "compileSeconds": 4.0,
        "graphBreaks": 2,
        "recompiles": 4,
        "eagerFallbacks": 6,
        "nonfiniteLosses": 7,
        "lossSpikes": 8,
        "reportedAt": 1_800_000_000.5,
    }


def test_a_mismatch_that_any_rank_reports_is_told() -> None:
    worker = received({"rank": 0, "step": 9}, {"rank": 1, "numerics_mismatch": "it differs"})
    assert progress(0, worker, now_seconds=100.0)["numericsMismatch"] == "it differs"


def test_unknown_is_absent() -> None:
    unknown = dict.fromkeys(["loss", "step_seconds", "samples_per_second"])
    shown = progress(0, received(unknown, processes=1), now_seconds=100.0)
    assert shown["ranks"] == [{"rank": 0, "ageSeconds": 0.0}]
    assert not {"loss", "samplesPerSecond", "checkpointStep"} & shown.keys()


def test_a_rate_of_steps_that_have_stopped_is_absent() -> None:
    stalled = received({"step_idle_seconds": 11.0, "mean_step_seconds": 0.5}, processes=1)
    shown = progress(0, stalled, now_seconds=100.0)
    assert shown["step"] == 1
    assert not {"samplesPerSecond", "mfu"} & shown.keys()


def test_sums_wait_for_every_rank() -> None:
    shown = progress(0, received({"rank": 1, "step": 4}), now_seconds=100.0)
    assert shown["step"] == 4
    assert not {"samplesPerSecond", "graphBreaks", "recompiles"} & shown.keys()


def test_a_rank_that_is_silent_shows_its_age_and_takes_the_rate_with_it() -> None:
    late = 100.0 + STALE_SECONDS + 1
    shown = progress(0, received({}, processes=1), now_seconds=late)
    assert shown["ranks"][0]["ageSeconds"] == STALE_SECONDS + 1
    assert "samplesPerSecond" not in shown
    assert shown["loss"] == 2.5
