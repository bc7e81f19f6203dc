"""Text of events to columns, a piece at a time, with what had to be mended or was lost."""

from collections.abc import Sequence
from decimal import Decimal

import msgspec
import numpy as np
import numpy.typing as npt

from kopeck.trace.columns import Columns, Piece
from kopeck.trace.events import UNKNOWN, Category, CollectiveArgs
from kopeck.trace.framing import single_events
from kopeck.trace.intervals import Nanoseconds
from kopeck.trace.losses import ARGS_NOT_READ, NO_DURATION, NO_TIME, READ_NOT
from kopeck.trace.mending import list_end, mended

_CATEGORIES = {
    "kernel": Category.KERNEL,
    "gpu_memcpy": Category.MEMCPY,
    "gpu_memset": Category.MEMSET,
    "cuda_runtime": Category.LAUNCH,
    "cuda_driver": Category.LAUNCH,
    "xpu_runtime": Category.LAUNCH,
    "cpu_op": Category.OPERATOR,
    "user_annotation": Category.ANNOTATION,
    "python_function": Category.PYTHON,
    # As torch wrote them before 1.13.
    "Kernel": Category.KERNEL,
    "Memcpy": Category.MEMCPY,
    "Memset": Category.MEMSET,
    "Runtime": Category.LAUNCH,
    "Operator": Category.OPERATOR,
}
_LONGEST_EXACT_MICROSECONDS = 2.0**43
"""Up to here, 101 days, a float64 tells microseconds to the nanosecond."""
_LONGEST_EXACT_INT = 2**53


class _Codes(dict[str, int]):
    """Numbers of categories; of those that have no name here, that of the others."""

    def __missing__(self, name: str) -> int:
        return int(Category.OTHER)


_NO_ARGS = msgspec.Raw(b"{}")


class _Event(msgspec.Struct, gc=False):
    ph: str = ""
    cat: str = ""
    name: str = ""
    ts: int | float | None = None
    dur: int | float | None = None
    pid: int | float | str | None = None
    tid: int | float | str | None = None
    args: msgspec.Raw = _NO_ARGS


class _ExactEvent(msgspec.Struct, gc=False):
    ph: str = ""
    cat: str = ""
    name: str = ""
    ts: Decimal | None = None
    dur: int | float | None = None
    pid: int | float | str | None = None
    tid: int | float | str | None = None
    args: msgspec.Raw = _NO_ARGS


class _Args(msgspec.Struct, gc=False):
    correlation: int = UNKNOWN
    stream: int | float | str = UNKNOWN
    collective: str | None = msgspec.field(default=None, name="Collective name")


_AnyEvent = _Event | _ExactEvent
# Plain numbers: members of an Enum are slow to compare and to store, a million times.
_CODES = _Codes({name: int(category) for name, category in _CATEGORIES.items()})
_code_of = _CODES.__getitem__
_LAUNCH, _OTHER = int(Category.LAUNCH), int(Category.OTHER)
_NOT_FOR_HTA = {"", "Trace"}
_EVENTS = msgspec.json.Decoder(list[_Event])
_EXACT_EVENTS = msgspec.json.Decoder(list[_ExactEvent])
_ONE_EVENT = msgspec.json.Decoder(_Event)
_ARGS = msgspec.json.Decoder(_Args)
_ALL_ARGS = msgspec.json.Decoder(list[_Args])
_COLLECTIVE = msgspec.json.Decoder(CollectiveArgs)


class PieceDecoder:
    """Decodes pieces of one stretch in order of the text.

    With `everything`, events of all categories are kept with their streams and correlations:
    what HTA looks at. Without, what is measured here.
    """

    def __init__(self, key: bytes, *, everything: bool = False) -> None:
        self.columns = Columns()
        self.tail: bytes | None = None
        """What stands behind the list of events; None before it ended."""
        self.key = key
        self._everything = everything

    def add(self, piece: bytes) -> None:
        """One piece: whole events joined by commas."""
        if self.tail is not None:
            self.tail += b"," + piece
            return
        if self._appends(piece):
            return
        repaired = mended(piece)
        if repaired != piece and self._appends(repaired):
            self.columns.losses.mended += 1
            return
        self._salvage(piece)

    def end(self, piece: bytes) -> None:
        """The last piece of the text: events, the end of the list, metadata."""
        if self.tail is not None:
            self.tail += b"," + piece
        else:
            self._salvage(piece)
        self.columns.losses.is_cut_short |= self.tail is None

    def _salvage(self, piece: bytes) -> None:
        """What can be read of a piece that holds the list's end, or is damaged."""
        end = list_end(piece)
        if end is None:
            repaired = mended(piece)
            self.columns.losses.mended += repaired != piece
            piece, end = repaired, list_end(repaired)
        if end is not None:
            self.tail = piece[end:]
            piece = piece[: end - 1]
        if not piece.strip():
            return
        if not self._appends(piece):
            self._salvage_singly(piece)

    def _appends(self, piece: bytes) -> bool:
        """Whether all of a piece could be read, and is now in the columns."""
        text = b"[" + piece + b"]"
        try:
            events: Sequence[_Event] = _EVENTS.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return False
        self._append(events, text)
        return True

    def _salvage_singly(self, piece: bytes) -> None:
        lost = 0
        for text in single_events(piece, self.key):
            try:
                event = _ONE_EVENT.decode(mended(text))
            except msgspec.DecodeError:
                lost += 1
            else:
                self._append([event], b"[" + text + b"]")
        if lost:
            self.columns.losses.counts[READ_NOT] += lost

    def _append(self, events: Sequence[_Event], text: bytes) -> None:
        columns = self.columns
        if not columns.has_float_times:
            columns.has_float_times = any(type(event.ts) is not int for event in events)
        kept = self._kept(events)
        if not columns.pieces:
            columns.has_first_event = bool(kept) and kept[0] is events[0]
        starts_us = np.array([event.ts for event in kept], dtype=np.float64)
        if not _are_exact(kept, starts_us):
            self._append_exact(text)
            return
        starts_us = np.nan_to_num(starts_us)
        whole = np.floor(starts_us)
        fraction_ns = np.rint((starts_us - whole) * 1000)
        self._append_rows(kept, whole.astype(np.int64) * 1000 + fraction_ns.astype(np.int64))

    def _append_exact(self, text: bytes) -> None:
        """The same, of times that no float64 can tell."""
        kept = self._kept(_EXACT_EVENTS.decode(text))
        starts_ns = [0 if event.ts is None else round(event.ts * 1000) for event in kept]
        self._append_rows(kept, np.array(starts_ns, dtype=np.int64))

    def _kept(self, events: Sequence[_AnyEvent]) -> list[_AnyEvent]:
        if self._everything:
            return [each for each in events if each.ph == "X" and each.cat not in _NOT_FOR_HTA]
        # In place of a method: this is done for each of millions of events.
        known = _CATEGORIES
        return [event for event in events if event.cat in known and event.ph == "X"]

    def _append_rows(self, events: Sequence[_AnyEvent], starts_ns: Nanoseconds) -> None:
        """Those that have a time and a duration."""
        durations_us = np.array([event.dur for event in events], dtype=np.float64)
        has_time, lasts = starts_ns > 0, durations_us >= 0
        if not (good := has_time & lasts).all():
            counts = self.columns.losses.counts
            counts[NO_TIME] += int((~has_time).sum())
            counts[NO_DURATION] += int((has_time & ~lasts).sum())
            events = [event for event, is_good in zip(events, good, strict=True) if is_good]
            starts_ns, durations_us = starts_ns[good], durations_us[good]
        ends_ns = starts_ns + np.rint(durations_us * 1000).astype(np.int64)
        columns = self.columns
        codes = np.fromiter(
            map(_code_of, [event.cat for event in events]), dtype=np.int8, count=len(events)
        )
        names = map(columns.names.__getitem__, [event.name for event in events])
        places = zip([each.pid for each in events], [each.tid for each in events], strict=True)
        threads = map(columns.threads.__getitem__, places)
        count = len(events)
        columns.pieces.append(
            Piece(
                codes,
                starts_ns,
                ends_ns,
                np.fromiter(names, dtype=np.int32, count=count),
                np.fromiter(threads, dtype=np.int32, count=count),
                *self._correlations_and_streams(events, codes),
            )
        )
        on_gpu = np.flatnonzero(codes < _LAUNCH).tolist()
        columns.gpus.update([events[row].pid for row in on_gpu])
        columns.count += count

    def _correlations_and_streams(
        self, events: Sequence[_AnyEvent], codes: npt.NDArray[np.int8]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """Of the events of the GPU and the calls; other categories have none."""
        last = _OTHER if self._everything else _LAUNCH
        rows = np.flatnonzero(codes <= last).tolist()
        raw = [events[row].args for row in rows]
        args = self._args(raw)
        correlations = np.full(len(events), UNKNOWN, dtype=np.int64)
        streams = np.full(len(events), UNKNOWN, dtype=np.int32)
        correlations[rows] = [each.correlation for each in args]
        streams[rows] = [
            each.stream if type(each.stream) is int else _stream_number(each.stream)
            for each in args
        ]
        for row, each, text in zip(rows, args, raw, strict=True):
            if each.collective is not None:
                self.columns.collectives[self.columns.count + row] = _collective(bytes(text))
        return correlations, streams

    def _args(self, raw: Sequence[msgspec.Raw]) -> list[_Args]:
        try:
            return _ALL_ARGS.decode(b"[" + b",".join(raw) + b"]")
        except msgspec.DecodeError:
            return [self._own_args(bytes(each)) for each in raw]

    def _own_args(self, raw: bytes) -> _Args:
        try:
            return _ARGS.decode(mended(raw))
        except msgspec.DecodeError:
            self.columns.losses.counts[ARGS_NOT_READ] += 1
            return _Args()


def _are_exact(events: Sequence[_AnyEvent], starts_us: npt.NDArray[np.float64]) -> bool:
    """Whether floats tell the times to the nanosecond: early ones, and whole microseconds."""
    if not (starts_us > _LONGEST_EXACT_MICROSECONDS).any():
        return True
    return all(type(event.ts) is int and event.ts < _LONGEST_EXACT_INT for event in events)


def _stream_number(stream: float | str) -> int:
    try:
        return int(stream)
    except (OverflowError, ValueError):
        return UNKNOWN


def _collective(raw: bytes) -> CollectiveArgs:
    try:
        return _COLLECTIVE.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    try:
        return _COLLECTIVE.decode(mended(raw))
    except msgspec.DecodeError:
        return CollectiveArgs()
