"""Steps cut out of traces between two marks, and what ranks tell each other of them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopeck.api.errors import ConfigError
from kopeck.trace.steps import MARK
from kopeck.trace.window import Window, shortest_ns, window_of
from kopeck_trainer.windows.recorder import MARK as TRAINER_MARK
from tests.unit.trace.traces import (
    Event,
    a_call,
    a_kernel,
    a_trace,
    all_reduce,
    an_operator,
    measured,
    nccl,
    read,
    together,
)

BEGIN_US, END_US = 100, 200
KERNELS = st.lists(
    st.tuples(st.integers(0, 300), st.integers(0, 60), st.booleans()), min_size=1, max_size=12
)
"""Begin, duration, and whether it communicates."""


def a_mark(at_us: float, **args: Any) -> Event:
    """Of no length, so that the window is what lies between."""
    return a_kernel(at_us, 0, MARK, **args)


def a_window(*events: Event, rank: int = 0, world_size: int = 2, **metadata: Any) -> Window:
    """Of one step, from 100 to 200 µs."""
    marks = a_mark(BEGIN_US), a_mark(END_US)
    return window_of(
        read(a_trace(*marks, *events, rank=rank, world_size=world_size, **metadata)), 1
    )


def test_trainer_and_reader_agree_on_the_mark() -> None:
    assert MARK == TRAINER_MARK


@given(KERNELS)
def test_only_what_is_between_the_marks_counts(kernels: list[tuple[int, int, bool]]) -> None:
    events = [
        nccl(begin, duration) if communicates else a_kernel(begin, duration)
        for begin, duration, communicates in kernels
    ]
    window = a_window(*events)
    running = [
        {kind for begin, duration, kind in kernels if begin <= moment < begin + duration}
        for moment in range(BEGIN_US, END_US)
    ]
    assert window.length_ns == 100_000
    assert window.communication_ns == sum(True in kinds for kinds in running) * 1000
    assert window.exposed_ns == sum(kinds == {True} for kinds in running) * 1000


@given(KERNELS, KERNELS)
def test_waiting_is_what_each_took_longer_than_the_fastest_rank(
    one: list[tuple[int, int, bool]], other: list[tuple[int, int, bool]]
) -> None:
    """Moment by moment: each collective waits first, then it transfers."""
    count = min(len(one), len(other))
    ranks = [
        [(BEGIN_US + begin % 99, duration) for begin, duration, _ in kernels[:count]]
        for kernels in (one, other)
    ]
    streams = [[20 + place for place in range(count)]] * 2
    windows = [
        a_window(
            *(
                all_reduce(begin, duration, stream=stream)
                for (begin, duration), stream in zip(kernels, on, strict=True)
            ),
            rank=rank,
        )
        for rank, (kernels, on) in enumerate(zip(ranks, streams, strict=True))
    ]
    fastest = [min(a[1], b[1]) for a, b in zip(*ranks, strict=True)]
    shortest = shortest_ns([window.collectives for window in windows])
    assert shortest == [each * 1000 for each in fastest]
    for window, kernels in zip(windows, ranks, strict=True):
        waiting = {
            moment
            for (begin, duration), transfer in zip(kernels, fastest, strict=True)
            for moment in range(begin, min(begin + duration - transfer, END_US))
        }
        assert window.wait_ns(shortest) == len(waiting) * 1000


def test_without_communication_the_overlap_is_unknown() -> None:
    window = a_window(a_kernel(110, 20))
    assert (window.communication_ns, window.overlap_ratio) == (0, None)
    assert window.wait_ns(shortest_ns([window.collectives] * 2) or []) == 0


@pytest.mark.parametrize("marks", [[], [100], [100, 150, 200]])
def test_a_trace_with_other_marks_is_refused(marks: list[int]) -> None:
    text = a_trace(a_kernel(0, 300), *(a_mark(at) for at in marks))
    with pytest.raises(ConfigError, match=f"has {len(marks)} marks between steps; record 1 steps"):
        window_of(read(text), 1)


@pytest.mark.parametrize(
    "others",
    [
        [all_reduce(110, 5)],
        [all_reduce(110, 5), nccl(120, 5, "AllGather", stream=20)],
        [all_reduce(110, 5), all_reduce(120, 5, **{"In msg nelems": 3, "Out msg nelems": 3})],
        [all_reduce(110, 5), all_reduce(120, 5, stream=21)],
    ],
)
def test_ranks_that_tell_of_other_collectives_are_not_compared(others: list[Event]) -> None:
    one = a_window(all_reduce(110, 5), all_reduce(120, 5))
    other = a_window(*others, rank=1)
    assert shortest_ns([one.collectives, other.collectives]) is None
    assert shortest_ns([one.collectives, None]) is None
    assert shortest_ns([one.collectives, one.collectives]) == [5000, 5000]


def test_the_number_of_a_stream_is_each_ranks_own() -> None:
    one = a_window(all_reduce(110, 5, stream=20), nccl(112, 7, "AllGather", stream=24))
    other = a_window(all_reduce(130, 9, stream=7), nccl(110, 3, "AllGather", stream=8), rank=1)
    assert shortest_ns([one.collectives, other.collectives]) == [5000, 3000]


@pytest.mark.parametrize(
    "event",
    [
        nccl(110, 5, "Broadcast"),
        nccl(110, 5, "SendRecv"),
        a_kernel(110, 5, "Memcpy PtoP (Device -> Device)", cat="gpu_memcpy"),
        all_reduce(110, 5, **{"Process Group Ranks": "[0]", "Group size": 1}),
    ],
)
def test_what_does_not_need_all_ranks_is_not_split(event: Event) -> None:
    window = a_window(all_reduce(120, 5), event)
    assert window.collectives is None
    assert window.wait_ns([5000]) is None
    assert window.communication_ns > 0


@pytest.mark.parametrize(("ranks", "is_known"), [([0, 1], False), ([0, 1, 2, 3], True)])
def test_a_kernel_without_its_group_may_be_of_any(ranks: list[int], *, is_known: bool) -> None:
    told = {"rank": 0, "world_size": 4, "pg_config": [{"pg_name": "1", "ranks": ranks}]}
    window = a_window(nccl(110, 5), world_size=4, distributedInfo=told)
    assert (window.collectives is not None) == is_known


def test_marks_tell_the_steps_where_no_profiler_does() -> None:
    """By their launches: what a host ahead of its GPU has launched for the next step is of it."""
    events = [
        *(a_call(number * 10, 1, number + 1) for number in range(3)),
        *(a_mark(50 + number * 50, correlation=number + 1) for number in range(3)),
        *(event for at in (5, 12) for event in (a_call(at, 1, 100 + at), _launched_by(100 + at))),
    ]
    assert measured(a_trace(*events)).kernels_per_step == 2


def _launched_by(correlation: int) -> Event:
    return a_kernel(120, 1, correlation=correlation)


def test_marks_let_collectives_be_matched_where_traces_begin_at_different_moments() -> None:
    def rank(number: int, before: int) -> str:
        """`before` collectives are of the step that had begun before the first mark."""
        of_old = [all_reduce(20 + 10 * place, 5) for place in range(before)]
        calls = [a_call(90, 1, 1), a_call(95, 1, 2), a_call(99, 1, 3)]
        inside = all_reduce(110, 10 + 20 * number, correlation=2)
        marks = [a_mark(100, correlation=1), a_mark(200, correlation=3)]
        return a_trace(*calls, *of_old, *marks, inside, rank=number, world_size=2)

    report = together(rank(0, 1), rank(1, 3))
    assert [each.split and each.split.wait_ns for each in report.ranks] == [0, 20_000]
    assert report.stragglers == (0,)


@pytest.mark.parametrize("begins_us", [150, 190, 205])
def test_a_gather_for_the_next_step_counts_where_it_was_launched(begins_us: int) -> None:
    """Beside the last mark, where it begins is each rank's own."""

    def rank(number: int, begin_us: int, duration_us: int) -> Window:
        calls = [a_call(90, 1, 1), a_call(94, 1, 2), a_call(97, 1, 3), a_call(99, 1, 4)]
        marks = [a_mark(BEGIN_US, correlation=1), a_mark(END_US, correlation=4)]
        gathers = [
            all_reduce(95, 10, correlation=7),  # of the step before
            all_reduce(120, 5, correlation=2),
            all_reduce(begin_us, duration_us, correlation=3),
        ]
        text = a_trace(*calls, *marks, *gathers, rank=number, world_size=2)
        return window_of(read(text), 1)

    one, other = rank(0, begins_us, 40), rank(1, 180, 30)
    shortest = shortest_ns([one.collectives, other.collectives])
    assert shortest == [5000, 30_000]
    waits_us = max(0, min(begins_us + 10, END_US) - begins_us)
    assert one.wait_ns(shortest) == waits_us * 1000


def test_on_a_cpu_what_gloo_announces_communicates_and_operators_compute() -> None:
    trace = read(
        a_trace(
            an_operator(99, 1, MARK, "user_annotation"),
            an_operator(110, 20, "gloo:all_reduce", "user_annotation"),
            an_operator(120, 30, "aten::mm"),
            an_operator(160, 10, "gloo:all_gather", "user_annotation"),
            an_operator(165, 20, "## Call CompiledFxGraph f1 ##", "user_annotation"),
            an_operator(108, 25, "c10d::allreduce_"),
            an_operator(200, 1, MARK, "user_annotation"),
            world_size=2,
        )
    )
    window = window_of(trace, 1)
    assert window.length_ns == 100_000
    assert (window.communication_ns, window.overlap_ns) == (30_000, 15_000)
    assert window.collectives is not None
    assert window.collectives.durations_ns == [20_000, 10_000]
