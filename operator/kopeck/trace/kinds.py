"""What a GPU spends its time on: computing, communicating, moving memory."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from kopeck.trace.events import ON_GPU, Category, Events
from kopeck.trace.intervals import Intervals, union


class Kind(IntEnum):
    """Of an event on the GPU."""

    COMPUTE = 0
    COMMUNICATION = 1
    PEER_COPY = 2
    """A copy between GPUs: how copy engines and symmetric memory communicate."""
    MEMORY = 3
    """Other copies, and memsets."""


COMMUNICATION = (Kind.COMMUNICATION, Kind.PEER_COPY)


@dataclass(frozen=True)
class Patterns:
    """Which events communicate, by regular expressions on their names."""

    kernels: tuple[str, ...] = (
        r"nccl",  # RCCL's kernels have the names of NCCL's
        r"rccl",
        r"hccl",
        r"deep_ep::",
        r"nvshmem",
        r"(one|two)_shot_all_reduce|multimem_(one_shot_)?(all|reduce)",  # torch's symmetric memory
    )
    copies: tuple[str, ...] = (r"PtoP|PeerToPeer",)


DEFAULT_PATTERNS = Patterns()


@dataclass(frozen=True)
class GpuEvents:
    """Rows of the events on a GPU, in the order of the trace, and the kind of each."""

    rows: npt.NDArray[np.intp]
    kinds: npt.NDArray[np.int8]


def gpu_events(events: Events, patterns: Patterns = DEFAULT_PATTERNS) -> GpuEvents:
    """What ran on the GPU: chosen by category, never by stream."""
    rows = events.rows(*ON_GPU)
    categories = events.categories[rows]
    name_ids = events.name_ids[rows]
    kinds = np.where(categories == Category.KERNEL, Kind.COMPUTE, Kind.MEMORY).astype(np.int8)
    communicates = _matching(events.names, name_ids, patterns.kernels)
    kinds[(kinds == Kind.COMPUTE) & communicates] = Kind.COMMUNICATION
    copies = (categories == Category.MEMCPY) & _matching(events.names, name_ids, patterns.copies)
    kinds[copies] = Kind.PEER_COPY
    return GpuEvents(rows, kinds)


def busy(events: Events, gpu: GpuEvents, *kinds: Kind) -> Intervals:
    """The time in which at least one event of some kinds runs; of any kind if none is named."""
    rows = gpu.rows[np.isin(gpu.kinds, kinds)] if kinds else gpu.rows
    return union(events.starts_ns[rows], events.ends_ns[rows])


def _matching(
    names: Sequence[str], name_ids: npt.NDArray[np.int32], patterns: Sequence[str]
) -> npt.NDArray[np.bool_]:
    pattern = re.compile("|".join(patterns), re.IGNORECASE)
    matches = np.array([pattern.search(name) is not None for name in names], dtype=np.bool_)
    return matches[name_ids]
