"""Steps, launches, idle causes and synchronisations of one rank."""

import pytest

from tests.unit.trace.traces import (
    Event,
    a_call,
    a_kernel,
    a_step,
    a_trace,
    an_operator,
    measured,
    nccl,
    needs_shared_traces,
    report_on,
)


def _launched(number: int, call: float, start: float, length: float = 10) -> list[Event]:
    return [a_call(call, 5, number), a_kernel(start, length, correlation=number)]


def test_the_gpu_waits_for_the_host_where_the_launch_came_late() -> None:
    part = measured(a_trace(*_launched(1, 0, 10), *_launched(2, 25, 100))).breakdown
    assert part is not None
    assert part.idle.host_wait_ns == 80_000


def test_a_short_gap_after_a_launch_in_time_is_the_gpus_own() -> None:
    part = measured(a_trace(*_launched(1, 0, 10), *_launched(2, 5, 30))).breakdown
    assert part is not None
    assert part.idle.kernel_wait_ns == 10_000


@pytest.mark.parametrize("launch", [[], [a_call(5, 1, 2)]])
def test_other_gaps_have_no_known_cause(launch: list[Event]) -> None:
    """Launched in time and yet 80 µs late; or launched before the trace began."""
    second = a_kernel(100, 10, correlation=2)
    part = measured(a_trace(*_launched(1, 0, 10), second, *launch)).breakdown
    assert part is not None
    assert part.idle.other_ns == 80_000


@pytest.mark.parametrize(
    "call",
    [
        "cudaLaunchKernel",
        "cudaLaunchKernelExC",
        "cuLaunchKernel",
        "cuLaunchKernelEx",
        "cudaGraphLaunch",
        "hipLaunchKernel",
    ],
)
def test_launches_are_joined_by_correlation_whatever_their_name(call: str) -> None:
    events = [a_call(0, 5, 1, call), a_kernel(25, 10, correlation=1)]
    launches = measured(a_trace(*events)).launches
    assert launches is not None
    assert (launches.launched, launches.delay_p50_seconds) == (1, 20e-6)


def test_all_kernels_of_a_graph_have_its_one_launch() -> None:
    kernels = [a_kernel(20 + 20 * number, 10, correlation=1) for number in range(4)]
    launches = measured(a_trace(a_call(0, 5, 1, "cudaGraphLaunch"), *kernels)).launches
    assert launches is not None
    assert launches.launched == 4


def test_kernels_belong_to_the_step_that_launched_them() -> None:
    """The second step's first kernel runs, late, in the third."""
    events = [a_step(number, number * 100, 100) for number in (1, 2, 3)]
    events += [*_launched(1, 110, 120), *_launched(2, 210, 310), *_launched(3, 220, 330)]
    events += [*_launched(4, 310, 350), nccl(360, 5, correlation=4)]
    summary = measured(a_trace(*events))
    assert [step.number for step in summary.steps] == [1, 2, 3]
    assert summary.kernels_per_step == 2
    assert {number: each.compute.total_ns for number, each in summary.timelines.items()} == {
        1: 10_000,
        2: 20_000,
        3: 10_000,
    }


def test_without_a_profilers_step_the_optimizer_tells_steps_apart() -> None:
    name = "Optimizer.step#AdamW.step"
    events = [an_operator(end - 10, 10, name, "user_annotation") for end in (100, 200)]
    events += [*_launched(1, 10, 20), *_launched(2, 110, 120), *_launched(3, 150, 160)]
    summary = measured(a_trace(*events))
    assert [(step.number, step.end_ns) for step in summary.steps] == [
        (0, 1_000_100_000),
        (1, 1_000_200_000),
    ]
    assert summary.kernels_per_step == 1.5


def test_without_either_there_are_no_steps() -> None:
    summary = measured(a_trace(*_launched(1, 10, 20)))
    assert (summary.steps, summary.kernels_per_step) == ((), None)
    assert summary.timelines[-1].compute.total_ns == 10_000


def test_a_synchronisation_has_the_stack_that_made_it() -> None:
    events = [
        an_operator(0, 100, "train.py(12): step", "python_function"),
        an_operator(10, 20, "aten::linear"),
        an_operator(40, 50, "aten::item"),
        an_operator(40, 45, "aten::_local_scalar_dense"),
        a_call(45, 30, 1, "cudaStreamSynchronize"),
        a_kernel(0, 70),
    ]
    (found,) = measured(a_trace(*events)).synchronisations
    assert found.stack == ("train.py(12): step", "aten::item", "aten::_local_scalar_dense")
    assert (found.call, found.is_implicit, found.count) == ("cudaStreamSynchronize", True, 1)
    assert found.seconds == pytest.approx(30e-6)


def test_a_synchronisation_that_the_program_asks_for_is_not_implicit() -> None:
    events = [an_operator(0, 100, "train.py(12): step", "python_function")]
    events += [a_call(45, 30, 1, "cudaDeviceSynchronize"), a_kernel(0, 70)]
    (found,) = measured(a_trace(*events)).synchronisations
    assert not found.is_implicit


def test_synchronisations_of_one_place_are_counted_together() -> None:
    events = []
    for start in (0, 100, 200):
        events += [an_operator(start, 50, "aten::item")]
        events += [a_call(start + 10, 20, start + 1, "cudaStreamSynchronize")]
    (found,) = measured(a_trace(*events)).synchronisations
    assert (found.count, found.seconds) == (3, pytest.approx(60e-6))


@pytest.mark.parametrize("call", ["cudaMemcpyAsync", "cudaEventQuery", "cudaStreamWaitEvent"])
def test_calls_that_do_not_wait_are_none(call: str) -> None:
    assert measured(a_trace(a_call(0, 5, 1, call))).synchronisations == ()


@needs_shared_traces
def test_a_real_job_waits_in_its_indexing() -> None:
    """DLRM's `aten::index` copies a mask to the host: 6.6 ms on rank 1."""
    report = report_on("dlrm_8ranks_v100.tar.gz")
    longest = report.ranks[1].summary.synchronisations[0]
    assert longest.is_implicit
    assert longest.seconds == pytest.approx(6.568e-3)
    assert longest.stack[-4:] == ("aten::index", "aten::to", "aten::_to_copy", "aten::copy_")


@needs_shared_traces
def test_a_real_compiled_job_has_as_many_kernels_in_each_step() -> None:
    report = report_on("h200x2_fsdp2_compiled_rank0.json.gz")
    assert len(report.ranks[0].summary.steps) == 2
    assert report.ranks[0].summary.kernels_per_step == 1077
