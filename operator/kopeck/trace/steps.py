"""The steps of a training in a trace, by what the host announced."""

import re
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from kopeck.trace.events import ON_GPU, Category, Events
from kopeck.trace.launches import launch_rows

MARK = "kopeck_window_mark"
"""What kopeck's trainer runs between two steps: a kernel, on a CPU an annotation of that name."""

_PROFILER_STEP = re.compile(r"ProfilerStep\s*#\s*(\d+)")
_OPTIMIZER_STEP = re.compile(r"Optimizer\.step#")


@dataclass(frozen=True)
class Step:
    """A step as the host saw it; what it launched on the GPU may end later."""

    number: int
    """As the profiler counts; from 0 where only the optimizer tells steps apart."""
    start_ns: int
    end_ns: int


def steps_of(events: Events) -> tuple[Step, ...]:
    """The profiler's steps, or what lies between the trainer's marks, or the optimizer's.

    Empty without any of them.
    """
    if marked := _between_marks(events):
        return marked
    rows = events.rows(Category.ANNOTATION)
    found = {}
    for name_id in np.unique(events.name_ids[rows]):
        if match := _PROFILER_STEP.match(events.names[name_id]):
            for row in rows[events.name_ids[rows] == name_id]:
                start, end = int(events.starts_ns[row]), int(events.ends_ns[row])
                found[start] = Step(int(match[1]), start, end)
    if found:
        return tuple(found[start] for start in sorted(found))
    return _between_optimizer_steps(events, rows)


def mark_rows(events: Events, *categories: Category) -> npt.NDArray[np.intp]:
    """Those of the trainer's marks, in the order of time."""
    ids = [number for number, name in enumerate(events.names) if name.startswith(MARK)]
    rows = events.rows(*categories)
    found = rows[np.isin(events.name_ids[rows], ids)]
    return found[np.argsort(events.starts_ns[found], kind="stable")]


def _between_marks(events: Events) -> tuple[Step, ...]:
    """On the host: from the launch of one kernel to that of the next."""
    launches = launch_rows(events, mark_rows(events, *ON_GPU))
    bounds = events.starts_ns[launches[launches >= 0]].tolist()
    return tuple(Step(number, start, end) for number, (start, end) in enumerate(pairwise(bounds)))


def _between_optimizer_steps(events: Events, rows: npt.NDArray[np.intp]) -> tuple[Step, ...]:
    names = [
        name_id
        for name_id in np.unique(events.name_ids[rows])
        if _OPTIMIZER_STEP.match(events.names[name_id])
    ]
    # Several optimizers step one behind the other: the last of them ends the step.
    ends = [np.sort(events.ends_ns[rows[events.name_ids[rows] == name_id]]) for name_id in names]
    if not ends or len({each.size for each in ends}) > 1:
        return ()
    bounds = [int(events.starts_ns.min()), *np.max(ends, axis=0).tolist()]
    return tuple(Step(number, start, end) for number, (start, end) in enumerate(pairwise(bounds)))


def step_numbers(
    steps: tuple[Step, ...], events: Events, launches: npt.NDArray[np.intp]
) -> npt.NDArray[np.int64]:
    """The step in which each event of the GPU was launched; -1 in none, or if unknown."""
    if not steps:
        return np.full(launches.size, -1, dtype=np.int64)
    starts = np.array([step.start_ns for step in steps])
    ends = np.array([step.end_ns for step in steps])
    numbers = np.array([step.number for step in steps])
    times = events.starts_ns[launches]
    at = np.searchsorted(starts, times, side="right") - 1
    is_inside = (launches >= 0) & (at >= 0) & (times < ends[at])
    return np.where(is_inside, numbers[at], -1)
