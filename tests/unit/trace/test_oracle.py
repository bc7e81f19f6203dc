"""Exact times against an oracle that knows nothing of intervals: it looks at each nanosecond."""

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from kopeck.trace.ranking import relatives
from tests.unit.trace.traces import (
    BEGIN_US,
    Event,
    a_call,
    a_kernel,
    a_trace,
    all_reduce,
    measured,
    nccl,
    read,
    together,
)

_MAKERS = {
    "compute": a_kernel,
    "communication": nccl,
    "peer copy": lambda start, length, **args: a_kernel(
        start, length, "Memcpy PtoP (Device -> Device)", cat="gpu_memcpy", **args
    ),
    "memory": lambda start, length, **args: a_kernel(
        start, length, "Memset (Device)", cat="gpu_memset", **args
    ),
}
_COMMUNICATES = ("communication", "peer copy")

# Nanoseconds; a gap may be longer than the 30 µs that tell the causes of idle time apart.
_starts = st.one_of(st.integers(0, 60), st.integers(0, 120_000))
_gpu_event = st.tuples(
    st.sampled_from(sorted(_MAKERS)),
    _starts,
    st.integers(0, 40),
    st.integers(7, 9),
    st.one_of(st.none(), _starts),
)
_ranks = st.lists(_gpu_event, min_size=1, max_size=12)

GpuEvent = tuple[str, int, int, int, int | None]


def _trace(gpu_events: Iterable[GpuEvent]) -> str:
    events: list[Event] = []
    for number, (kind, start, length, stream, launched) in enumerate(gpu_events, start=1):
        make = _MAKERS[kind]
        events.append(make(start / 1000, length / 1000, stream=stream, correlation=number))
        if launched is not None:
            events.append(a_call(launched / 1000, 0.001, number))
    return a_trace(*events)


def _covered(gpu_events: Iterable[GpuEvent], *kinds: str) -> set[int]:
    return {
        nanosecond
        for kind, start, length, _, _ in gpu_events
        if kind in kinds or not kinds
        for nanosecond in range(start, start + length)
    }


@given(_ranks)
def test_each_nanosecond_is_charged_to_what_covers_it(gpu_events: list[GpuEvent]) -> None:
    found = measured(_trace(gpu_events)).breakdown
    busy = _covered(gpu_events)
    if not busy:
        assert found is None
        return
    assert found is not None
    compute, communication = _covered(gpu_events, "compute"), _covered(gpu_events, *_COMMUNICATES)
    assert found.span_ns == max(busy) + 1 - min(busy)
    assert found.compute_ns == len(compute)
    assert found.communication_ns == len(communication)
    assert found.peer_copy_ns == len(_covered(gpu_events, "peer copy"))
    assert found.overlap_ns == len(communication & compute)
    assert found.exposed_ns == len(communication - compute)
    assert found.memory_ns == len(busy - compute - communication)
    assert found.idle_ns == found.span_ns - len(busy)
    ratio = len(communication & compute) / len(communication) if communication else None
    assert found.overlap_ratio == ratio


@given(_ranks)
def test_each_idle_nanosecond_has_the_cause_of_its_gap(gpu_events: list[GpuEvent]) -> None:
    found = measured(_trace(gpu_events)).breakdown
    lasting = [event for event in gpu_events if event[2]]
    if not lasting:
        return
    assert found is not None
    expected = {"host": 0, "kernel": 0, "other": 0}
    for begin, end in _gaps(_covered(lasting)):
        causes = _causes(gpu_events, begin, end)
        if len(causes) > 1:  # Several begin at once with different causes: any may be the first.
            return
        expected[causes.pop()] += end - begin
    idle = found.idle
    assert (idle.host_wait_ns, idle.kernel_wait_ns, idle.other_ns) == tuple(expected.values())


def _gaps(busy: set[int]) -> Iterable[tuple[int, int]]:
    begin = min(busy)
    for nanosecond in sorted(busy):
        if nanosecond > begin:
            yield begin, nanosecond
        begin = nanosecond + 1


def _causes(gpu_events: Iterable[GpuEvent], begin: int, end: int) -> set[str]:
    causes = set()
    for _, start, _, _, launched in gpu_events:
        if start == end:
            if launched is not None and launched > begin:
                causes.add("host")
            else:
                is_kernel = launched is not None and end - begin < 30_000
                causes.add("kernel" if is_kernel else "other")
    return causes


# Of each collective its stream, and of each rank begin and duration in nanoseconds.
_collectives = st.lists(
    st.tuples(st.integers(20, 22), st.lists(st.tuples(_starts, st.integers(1, 90)), min_size=3)),
    min_size=1,
    max_size=6,
).map(lambda found: [(stream, sorted(times[:3])) for stream, times in found])

JobCollective = tuple[int, list[tuple[int, int]]]


@given(_collectives)
def test_each_nanosecond_of_waiting_counts_once(collectives: list[JobCollective]) -> None:
    """However many streams wait in it, for the scores and for what late ranks are charged with."""
    report = together(*(_rank_trace(rank, collectives) for rank in range(3)))
    waits = [_waits(rank, collectives) for rank in range(3)]
    spans = [rank.summary.breakdown.span_ns for rank in report.ranks if rank.summary.breakdown]
    own = [
        span - len(set().union(*waited.values())) for span, waited in zip(spans, waits, strict=True)
    ]
    assert [rank.split and rank.split.held_up_ns for rank in report.ranks] == [
        sum(len(waited.get(late, ())) for waited in waits) // 2 for late in range(3)
    ]
    assert [each.own for each in relatives(report.ranks)] == [each / min(own) for each in own]
    assert [rank.score for rank in report.ranks] == [min(own) / each for each in own]


def _rank_trace(rank: int, collectives: Iterable[JobCollective]) -> str:
    told = {"Process Group Ranks": "[0, 1, 2]", "Group size": 3}
    events = [
        all_reduce(start / 1000, length / 1000, stream=stream, Seq=number, **told)
        for number, (stream, times) in enumerate(collectives)
        for start, length in times[rank : rank + 1]
    ]
    return a_trace(*events, rank=rank, world_size=3)


def _waits(rank: int, collectives: Iterable[JobCollective]) -> dict[int, set[int]]:
    """The nanoseconds in which a rank waits, by the rank that it waits for."""
    waited: dict[int, set[int]] = {}
    for _, times in collectives:
        lengths = [length for _, length in times]
        start, length = times[rank]
        late = lengths.index(min(lengths))
        waited.setdefault(late, set()).update(range(start, start + length - min(lengths)))
    return waited


@given(st.integers(0, 8_000_000_000_000_000), st.integers(0, 10**9))
def test_times_are_exact_to_the_nanosecond(start_ns: int, length_ns: int) -> None:
    """As Kineto writes them, in microseconds with three digits: up to 92 days from its base."""
    _holds_exactly(start_ns + 1, length_ns)


@given(st.integers(1_600_000_000_000_000_000, 1_900_000_000_000_000_000), st.integers(0, 10**9))
def test_times_since_1970_are_exact_too(start_ns: int, length_ns: int) -> None:
    _holds_exactly(start_ns, length_ns)


def _holds_exactly(start_ns: int, length_ns: int) -> None:
    text = a_trace(a_kernel(-BEGIN_US, 4242))
    text = text.replace('"ts": 0', f'"ts": {_microseconds(start_ns)}')
    events = read(text.replace('"dur": 4242', f'"dur": {_microseconds(length_ns)}')).events
    assert (events.starts_ns.tolist(), events.ends_ns.tolist()) == (
        [start_ns],
        [start_ns + length_ns],
    )


def _microseconds(nanoseconds: int) -> str:
    return f"{nanoseconds // 1000}.{nanoseconds % 1000:03}"
