"""What HTA 0.5.0 answers on real traces, to the digit that it prints."""

from tempfile import TemporaryDirectory

import pytest

from kopeck.trace.hta import HtaFigures, hta_figures
from kopeck.trace.rank_reader import read_rank
from tests.unit.trace.traces import (
    a_call,
    a_kernel,
    a_step,
    a_trace,
    nccl,
    needs_shared_traces,
    read,
    shared,
)

DLRM = "dlrm_8ranks_v100.tar.gz"


def _answers(archive: str, place: int = 0, *, last_step: bool = False) -> HtaFigures:
    with TemporaryDirectory() as folder:
        trace = read_rank(shared(folder, archive)[place], everything=True)
    figures = hta_figures(trace, last_step=last_step)
    assert figures is not None
    return figures


# overlap %, communication, overlap, exposed, idle, compute, non-compute, kernel time
@needs_shared_traces
@pytest.mark.parametrize(
    ("name", "place", "last_step", "expected"),
    [
        ("hta_sampled_rank0.json.gz", 0, False,
         (11.81, 195327, 23068, 172259, 321378, 106252, 172428, 600058)),
        ("hta_sampled_rank0.json.gz", 0, True,
         (14.95, 396199, 59216, 336983, 675191, 210320, 337336, 1222847)),
        ("hta_sampled_rank1.json.gz", 0, False,
         (20.05, 168027, 33691, 134336, 328671, 135548, 136455, 600674)),
        ("hta_sampled_rank1.json.gz", 0, True,
         (19.93, 379053, 75530, 303523, 651136, 271973, 308077, 1231186)),
        ("hta_nccl_a100.json.gz", 0, False,
         (14.31, 24278, 3473, 20805, 338781, 75169, 21636, 435586)),
        ("hta_nccl_a100.json.gz", 0, True,
         (15.14, 46858, 7092, 39766, 506512, 113012, 41026, 660550)),
        (DLRM, 0, False, (4.50, 5798, 261, 5537, 6419, 1034, 5556, 13009)),
        (DLRM, 1, False, (2.47, 11336, 280, 11056, 6428, 1246, 11075, 18749)),
        (DLRM, 2, False, (7.88, 3492, 275, 3217, 7046, 1068, 3236, 11350)),
        (DLRM, 3, False, (3.31, 9774, 324, 9450, 8145, 1240, 9468, 18853)),
        (DLRM, 4, False, (0.56, 6587, 37, 6550, 8887, 1126, 6576, 16589)),
        (DLRM, 5, False, (0.64, 6251, 40, 6211, 9121, 1041, 6230, 16392)),
        (DLRM, 6, False, (7.56, 3558, 269, 3289, 7051, 1051, 3308, 11410)),
        (DLRM, 7, False, (9.51, 1746, 166, 1580, 8308, 1059, 1600, 10967)),
    ],
)  # fmt: skip
def test_overlap_and_temporal_breakdown_are_htas(
    name: str,
    place: int,
    last_step: bool,  # noqa: FBT001  one of the cases
    expected: tuple[float, ...],
) -> None:
    figures = _answers(name, place, last_step=last_step)
    times = (figures.communication_us, figures.overlap_us, figures.exposed_us, figures.idle_us)
    rest = (figures.compute_us, figures.non_compute_us, figures.kernel_time_us)
    assert (figures.overlap_percent, *times, *rest) == expected


# host wait, kernel wait, other by stream
@needs_shared_traces
@pytest.mark.parametrize(
    ("name", "place", "expected"),
    [
        ("hta_sampled_rank0.json.gz", 0,
         {23: (596037, 70, 34), 84: (148934, 6, 0), 25: (0, 9, 47865),
          7: (213825, 1985, 261740)}),
        ("hta_sampled_rank1.json.gz", 0,
         {23: (596313, 100, 0), 25: (0, 9, 53028), 7: (156827, 1816, 281064),
          84: (251860, 0, 23247)}),
        ("hta_nccl_a100.json.gz", 0, {7: (357247, 2155, 0), 40: (381499, 0, 0)}),
        (DLRM, 0, {22: (145, 0, 0), 7: (11448, 123, 0), 24: (5906, 18, 0), 84: (4740, 3, 0)}),
        (DLRM, 1, {7: (17449, 115, 0), 22: (154, 0, 0), 24: (11382, 12, 0), 84: (4688, 3, 0)}),
    ],
)  # fmt: skip
def test_idle_time_by_cause_is_htas(
    name: str, place: int, expected: dict[int, tuple[float, float, float]]
) -> None:
    found = _answers(name, place).idle_by_stream
    assert {stream: tuple(idle) for stream, idle in found.items() if sum(idle)} == expected


# pairs, CPU, GPU, median delay, short kernels, long calls, long delays
@needs_shared_traces
@pytest.mark.parametrize(
    ("name", "place", "expected"),
    [
        ("hta_sampled_rank0.json.gz", 0, (602, 5109, 302241, 10246, 140, 0, 469)),
        ("hta_sampled_rank1.json.gz", 0, (577, 4988, 306242, 10282, 140, 0, 442)),
        ("hta_nccl_a100.json.gz", 0, (2516, 21289, 100462, 3, 1347, 0, 180)),
        (DLRM, 0, (261, 2359, 6851, 2)),
        (DLRM, 1, (262, 2334, 12398, 2)),
    ],
)  # fmt: skip
def test_launch_statistics_are_htas(name: str, place: int, expected: tuple[float, ...]) -> None:
    launches = _answers(name, place).launches
    assert launches is not None
    assert launches[: len(expected)] == expected


def _figures(*events: dict[str, object]) -> HtaFigures:
    figures = hta_figures(read(a_trace(*events), everything=True))
    assert figures is not None
    return figures


def test_an_operator_with_a_stream_counts_as_gpu_time_as_in_hta() -> None:
    operator = a_kernel(20, 5, "triton_poi", cat="cpu_op", stream=0)
    assert _figures(a_kernel(0, 10), operator).compute_us == 15


def test_times_with_fractions_shrink_to_whole_microseconds() -> None:
    assert _figures(a_kernel(0.25, 10.5), a_kernel(20.0, 1.0)).compute_us == 9 + 1


def test_whole_microseconds_stay_as_they_are() -> None:
    assert _figures(a_kernel(0, 10.5), a_kernel(20, 1)).compute_us == 10.5 + 1


def test_the_last_of_several_steps_is_left_out() -> None:
    events = [a_step(1, 0, 50), a_step(2, 50, 50)]
    for number, start in enumerate((0, 60), start=1):
        events += [a_call(start + 1, 2, number), nccl(start + 5, 10, correlation=number)]
    assert _figures(*events).communication_us == 10
    everything = hta_figures(read(a_trace(*events), everything=True), last_step=True)
    assert everything is not None
    assert everything.communication_us == 20


def test_a_single_step_is_kept_whole() -> None:
    events = (a_step(1, 0, 50), nccl(5, 10), nccl(60, 10))
    assert _figures(*events).communication_us == 20


def test_no_communication_has_no_overlap() -> None:
    assert _figures(a_kernel(0, 10)).overlap_percent is None
