"""Whole steps of a training, cut out of each rank's trace between two marks.

The marks are on the device's own timeline, so a window is exactly as long as its steps. What ranks
tell each other of theirs are durations: no clock is compared.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from kopeck.api.errors import ConfigError
from kopeck.trace.collectives import SYNCHRONISING, Collective, Group, collectives_of
from kopeck.trace.events import ON_GPU, Category, Events, Origin, RankTrace
from kopeck.trace.gloo import gloo_events
from kopeck.trace.intervals import Nanoseconds, intersection, union
from kopeck.trace.kinds import COMMUNICATION, GpuEvents, Kind, busy, gpu_events
from kopeck.trace.launches import launch_rows
from kopeck.trace.steps import mark_rows, step_numbers, steps_of


@dataclass(frozen=True)
class Collectives:
    """What one rank tells the others of its collectives in a window."""

    likeness: str
    """Equal on ranks that took part in the same collectives in the same order."""
    durations_ns: list[int]


@dataclass(frozen=True)
class Window:
    """One rank's part of the time between two marks."""

    begin_ns: int
    end_ns: int
    communication_ns: int
    """At least one kernel or copy communicates."""
    overlap_ns: int
    """Communication while at least one kernel computes."""
    collectives: Collectives | None
    """None where one cannot be split into waiting and transfer, or may not be of all ranks."""
    starts_ns: Nanoseconds
    """Of the collectives."""

    @property
    def length_ns(self) -> int:
        return self.end_ns - self.begin_ns

    @property
    def exposed_ns(self) -> int:
        """Communication while nothing computes."""
        return self.communication_ns - self.overlap_ns

    @property
    def overlap_ratio(self) -> float | None:
        """The share of communication beside computation, 0-1; None without communication."""
        return self.overlap_ns / self.communication_ns if self.communication_ns else None

    def wait_ns(self, shortest_ns: Sequence[int]) -> int | None:
        """The time in which at least one collective waits for late ranks; None where unknown.

        `shortest_ns` are the collectives' shortest durations of any rank: the last rank to come
        waits for nobody. The rest of each duration, its first part, is waiting.
        """
        if self.collectives is None:
            return None
        waits = np.array(self.collectives.durations_ns, dtype=np.int64) - np.array(
            shortest_ns, dtype=np.int64
        )
        inside = (
            np.clip(each, self.begin_ns, self.end_ns)
            for each in (self.starts_ns, self.starts_ns + waits)
        )
        return union(*inside).total_ns


def window_of(trace: RankTrace, steps: int) -> Window:
    """What lies between the first mark of the trainer and the last one.

    Raises ConfigError for a trace that has not one mark more than steps.
    """
    events = trace.events
    on_gpu = mark_rows(events, *ON_GPU)
    marks = on_gpu if on_gpu.size else mark_rows(events, Category.ANNOTATION)
    if marks.size != steps + 1:
        wrong = f"has {marks.size} marks between steps"
        raise ConfigError(trace.origin.file, wrong, f"record {steps} steps with a mark around each")
    begin_ns, end_ns = int(events.ends_ns[marks[0]]), int(events.starts_ns[marks[-1]])
    device = gpu_events(events) if on_gpu.size else gloo_events(events)
    inside = _clipped(events, begin_ns, end_ns)
    communication = busy(inside, device, *COMMUNICATION)
    found = _collectives(trace, device, steps, (begin_ns, end_ns))
    copies_between_gpus = busy(inside, device, Kind.PEER_COPY)
    is_told_apart = _are_of_all_ranks(found, trace.origin) and not copies_between_gpus.total_ns
    return Window(
        begin_ns=begin_ns,
        end_ns=end_ns,
        communication_ns=communication.total_ns,
        overlap_ns=intersection(communication, busy(inside, device, Kind.COMPUTE)).total_ns,
        collectives=_told(found) if is_told_apart else None,
        starts_ns=np.array(
            [each.start_ns - trace.origin.base_ns for each in found], dtype=np.int64
        ),
    )


def shortest_ns(ranks: Sequence[Collectives | None]) -> list[int] | None:
    """The shortest duration of each collective over all ranks.

    None where a rank does not tell, or tells of other collectives than the rest.
    """
    told = [each for each in ranks if each is not None]
    if len(told) < len(ranks) or len({each.likeness for each in told}) != 1:
        return None
    return [min(together) for together in zip(*(each.durations_ns for each in told), strict=True)]


def _clipped(events: Events, begin_ns: int, end_ns: int) -> Events:
    """What is outside lasts no time."""
    starts_ns = np.clip(events.starts_ns, begin_ns, end_ns)
    return replace(events, starts_ns=starts_ns, ends_ns=np.clip(events.ends_ns, begin_ns, end_ns))


def _collectives(
    trace: RankTrace, device: GpuEvents, steps: int, bounds_ns: tuple[int, int]
) -> list[Collective]:
    """Of the window, stream by stream, since ranks agree on the order within one alone.

    Those that were launched in its steps, which are the same on all ranks: one for the next step
    may begin before or after a mark. On a CPU, where nothing is launched, those that begin in it.
    """
    events = trace.events
    launches = launch_rows(events, device.rows)
    launched = steps_of(events)
    numbers = step_numbers(launched if len(launched) == steps else (), events, launches)
    found = collectives_of(trace.origin, events, device, launches, numbers)
    if len(launched) == steps:
        found = [each for each in found if each.step >= 0]
    else:
        begin_ns, end_ns = (trace.origin.base_ns + bound for bound in bounds_ns)
        found = [each for each in found if begin_ns <= each.start_ns < end_ns]
    return sorted(found, key=lambda each: (each.stream, each.start_ns))


def _are_of_all_ranks(collectives: Sequence[Collective], origin: Origin) -> bool:
    """Whether each collective needs every rank of the job, and its group is known to be all."""
    return all(
        each.kind in SYNCHRONISING and _is_everybody(each.group, origin) for each in collectives
    )


def _is_everybody(group: Group, origin: Origin) -> bool:
    """A kernel that does not tell its group may be of any that the job has."""
    if origin.world_size is None:
        return False
    if group.ranks is not None:
        return len(group.ranks) == origin.world_size
    smaller = any(1 < len(ranks) < origin.world_size for ranks in origin.groups.values())
    return group.size == origin.world_size and not smaller


def _told(collectives: Sequence[Collective]) -> Collectives:
    """The number of a stream is each rank's own, its place among them is not."""
    streams = sorted({each.stream for each in collectives})
    signature = [
        (streams.index(each.stream), each.kind.value, each.dtype, each.elements)
        for each in collectives
    ]
    return Collectives(
        likeness=hashlib.sha256(repr(signature).encode()).hexdigest(),
        durations_ns=[each.duration_ns for each in collectives],
    )
