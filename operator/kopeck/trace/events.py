"""The events of one rank's trace, as columns."""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Annotated

import msgspec
import numpy as np
import numpy.typing as npt

from kopeck.trace.intervals import Nanoseconds


class Category(IntEnum):
    """What an event is, by the `cat` of Kineto."""

    KERNEL = 0
    MEMCPY = 1
    MEMSET = 2
    LAUNCH = 3
    """A call into the runtime or driver of CUDA or HIP."""
    OPERATOR = 4
    ANNOTATION = 5
    PYTHON = 6
    OTHER = 7
    """Kept only where a reader asks for every event."""


ON_GPU = (Category.KERNEL, Category.MEMCPY, Category.MEMSET)
UNKNOWN = -1
"""A correlation or stream that an event does not tell."""
LATEST_NS = 4_102_444_800 * 10**9
"""The year 2100, counted from 1970: a later begin is none, and sums of times fit 64 bits."""
LONGEST_NS = 86_400 * 10**9
"""A day: profiles are of minutes, and no collective waits longer."""
_Int = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""More digits than 64 bits are damage, with which nothing can be reckoned."""


class CollectiveArgs(msgspec.Struct, frozen=True, gc=False):
    """What Kineto tells of a collective beside its kernel; None and "" where it does not."""

    name: str = msgspec.field(default="", name="Collective name")
    elements_in: _Int | None = msgspec.field(default=None, name="In msg nelems")
    elements_out: _Int | None = msgspec.field(default=None, name="Out msg nelems")
    group_size: _Int | None = msgspec.field(default=None, name="Group size")
    dtype: str = ""
    group_name: str = msgspec.field(default="", name="Process Group Name")
    group_description: str = msgspec.field(default="", name="Process Group Description")
    group_ranks: str = msgspec.field(default="", name="Process Group Ranks")
    """As "[0, 1]", cut after thirty ranks."""
    sequence: _Int | None = msgspec.field(default=None, name="Seq")
    source_rank: _Int | None = msgspec.field(default=None, name="Src Rank")
    target_rank: _Int | None = msgspec.field(default=None, name="Dst Rank")


@dataclass(frozen=True)
class Origin:
    """Where a trace comes from, by its own words; None where it does not say."""

    file: str
    rank: int | None = None
    world_size: int | None = None
    gpu: str | None = None
    """The model, as "NVIDIA H200"."""
    base_ns: int = 0
    """What its times are counted from, in nanoseconds since 1970."""
    groups: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """The ranks of each process group, by its name."""


@dataclass(frozen=True)
class Events:
    """One event per row. Times are nanoseconds since the base of the trace."""

    names: tuple[str, ...]
    categories: npt.NDArray[np.int8]
    starts_ns: Nanoseconds
    ends_ns: Nanoseconds
    name_ids: npt.NDArray[np.int32]
    """Index into `names`."""
    threads: npt.NDArray[np.int32]
    """Numbers of each (process, thread)."""
    correlations: npt.NDArray[np.int64]
    streams: npt.NDArray[np.int32]
    collectives: dict[int, CollectiveArgs]
    """By row, of the kernels that tell of one."""

    def __len__(self) -> int:
        return self.starts_ns.size

    def rows(self, *categories: Category) -> npt.NDArray[np.intp]:
        """Numbers of the rows of some categories."""
        return np.flatnonzero(np.isin(self.categories, categories))

    def name_of(self, row: int) -> str:
        return self.names[int(self.name_ids[row])]


@dataclass(frozen=True)
class RankTrace:
    """One rank's trace: whence it is, its events, and in sentences what of it is lost."""

    origin: Origin
    events: Events
    lost: tuple[str, ...] = ()
    has_float_times: bool = False
    """Whether any time was written with a fraction, or is missing: what HTA rounds by.

    Known, as the next, only of a trace that is read with everything.
    """
    has_first_event: bool = False
    """Whether the text's first event is the first row: what HTA links the unlinked to."""
