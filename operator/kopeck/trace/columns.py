"""Columns of events as they grow, and as one table in the end."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kopeck.trace.events import ON_GPU, CollectiveArgs, Events
from kopeck.trace.intervals import Nanoseconds
from kopeck.trace.losses import Losses


class Numbers(dict[Any, int]):
    """Numbers from 0 in order of appearance."""

    def __missing__(self, key: Any) -> int:
        self[key] = number = len(self)
        return number


class Piece(NamedTuple):
    """Events as `Events` has them, with the names and threads of their stretch."""

    categories: npt.NDArray[np.int8]
    starts_ns: Nanoseconds
    ends_ns: Nanoseconds
    name_ids: npt.NDArray[np.int32]
    threads: npt.NDArray[np.int32]
    correlations: npt.NDArray[np.int64]
    streams: npt.NDArray[np.int32]


@dataclass
class Columns:
    """Events of a stretch of the text, in pieces; names and threads have numbers of its own."""

    names: Numbers = field(default_factory=Numbers)
    threads: Numbers = field(default_factory=Numbers)
    pieces: list[Piece] = field(default_factory=list)
    collectives: dict[int, CollectiveArgs] = field(default_factory=dict)
    count: int = 0
    losses: Losses = field(default_factory=Losses)
    has_float_times: bool = False
    has_first_event: bool = False
    tail: bytes | None = None
    """What stands behind the list of events; None where the list does not end."""

    @property
    def gpus(self) -> set[Any]:
        """What the GPUs are called that events are of."""
        processes = [process for process, _ in self.threads]
        return {
            processes[thread]
            for piece in self.pieces
            for thread in np.unique(piece.threads[np.isin(piece.categories, ON_GPU)])
        }

    def join_pieces(self) -> None:
        """Make one of them, which is handed to another process faster than many."""
        self.pieces = [_concatenated(self.pieces)]


def joined(stretches: Sequence[Columns]) -> Events:
    """The events of stretches of one text, one behind the other; the stretches are emptied."""
    names, threads = Numbers(), Numbers()
    pieces: list[Piece] = []
    collectives: dict[int, CollectiveArgs] = {}
    before = 0
    for stretch in stretches:
        name_numbers = _renumbered(stretch.names, names)
        thread_numbers = _renumbered(stretch.threads, threads)
        for piece in stretch.pieces:
            name_ids, thread_ids = name_numbers[piece.name_ids], thread_numbers[piece.threads]
            pieces.append(piece._replace(name_ids=name_ids, threads=thread_ids))
        collectives |= {before + row: args for row, args in stretch.collectives.items()}
        before += stretch.count
        stretch.pieces.clear()
    columns = _concatenated(pieces)
    return Events(names=tuple(names), **columns._asdict(), collectives=collectives)


def _concatenated(pieces: Sequence[Piece]) -> Piece:
    columns = zip(_NO_EVENTS, *pieces, strict=True)
    return Piece._make(np.concatenate(column) for column in columns)


_NO_EVENTS = Piece(
    categories=np.empty(0, dtype=np.int8),
    starts_ns=np.empty(0, dtype=np.int64),
    ends_ns=np.empty(0, dtype=np.int64),
    name_ids=np.empty(0, dtype=np.int32),
    threads=np.empty(0, dtype=np.int32),
    correlations=np.empty(0, dtype=np.int64),
    streams=np.empty(0, dtype=np.int32),
)


def _renumbered(own: Numbers, common: Numbers) -> npt.NDArray[np.int32]:
    return np.array([common[each] for each in own], dtype=np.int32)
