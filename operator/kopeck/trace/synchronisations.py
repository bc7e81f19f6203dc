"""Calls that stop the host until the GPU has come so far, and what in the program made them."""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kopeck.trace.events import Category, Events

_WAITING_CALL = re.compile(
    r"(cuda|hip|cu)(Stream|Device|Event|Ctx)Synchronize"
    r"|(cuda|hip)Memcpy(2D)?|hipMemcpyWithStream|cuMemcpy(DtoH|HtoD)(_v2)?"
)

_BLOCK = 512
"""Events that are skipped at once."""


@dataclass(frozen=True)
class Synchronisation:
    """Calls of one name from one place in the program."""

    call: str
    stack: tuple[str, ...]
    """What encloses the call on its thread, the outermost first."""
    is_implicit: bool
    """Whether an operator made the call (`.item()`, a copy to the host), not the program itself."""
    count: int
    seconds: float


def synchronisations(events: Events) -> tuple[Synchronisation, ...]:
    """By lost time, the longest first."""
    calls = events.rows(Category.LAUNCH)
    waits = [at for at, name in enumerate(events.names) if _WAITING_CALL.fullmatch(name)]
    calls = calls[np.isin(events.name_ids[calls], waits)]
    found: dict[tuple[str, tuple[str, ...], bool], list[float]] = defaultdict(list)
    for row, rows in _stacks(events, calls):
        stack = tuple(events.name_of(each) for each in rows)
        is_implicit = any(events.categories[each] == Category.OPERATOR for each in rows)
        seconds = (events.ends_ns[row] - events.starts_ns[row]) / 1e9
        found[events.name_of(row), stack, is_implicit].append(float(seconds))
    grouped = [
        Synchronisation(*place, count=len(seconds), seconds=sum(seconds))
        for place, seconds in found.items()
    ]
    return tuple(sorted(grouped, key=lambda each: -each.seconds))


def _stacks(events: Events, calls: npt.NDArray[np.intp]) -> Iterator[tuple[int, list[int]]]:
    """Each call's row with the rows of what encloses it, the outermost first."""
    operators = events.rows(Category.OPERATOR, Category.ANNOTATION, Category.PYTHON)
    for thread in np.unique(events.threads[calls]):
        own = operators[events.threads[operators] == thread]
        # Of those that begin at once, the longest encloses the others.
        own = own[np.lexsort((-events.ends_ns[own], events.starts_ns[own]))]
        starts, ends = events.starts_ns[own], events.ends_ns[own]
        blocks = -(-own.size // _BLOCK)
        latest = np.full(blocks * _BLOCK, np.iinfo(np.int64).min)
        latest[: own.size] = ends
        latest_of_blocks = latest.reshape(blocks, _BLOCK).max(axis=1)
        for call in calls[events.threads[calls] == thread].tolist():
            until = int(np.searchsorted(starts, events.starts_ns[call], side="right"))
            end = events.ends_ns[call]
            # What ended before the call is skipped block by block: nearly all of the trace.
            near = np.flatnonzero(latest_of_blocks[: -(-until // _BLOCK)] >= end)
            begun = (near[:, np.newaxis] * _BLOCK + np.arange(_BLOCK)).ravel()
            begun = begun[begun < until]
            yield call, own[begun[ends[begun] >= end]].tolist()
