"""Text of events to columns, a piece at a time, with what had to be mended or was lost."""

from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal

import msgspec
import numpy as np
import numpy.typing as npt

from kopeck.trace.columns import Columns, Piece
from kopeck.trace.events import LATEST_NS, LONGEST_NS, UNKNOWN, Category, CollectiveArgs
from kopeck.trace.framing import single_events
from kopeck.trace.intervals import Nanoseconds
from kopeck.trace.layout import NOT_KEPT, NOT_READ, FirstLines, Head, Rows, rows_in_layout
from kopeck.trace.losses import Loss
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
_NO_TIME, _IMPOSSIBLE = 0, -1
"""In place of a begin in nanoseconds."""
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What text raises that is no JSON, not of the types it should be, no UTF-8, or nested too deep."""


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
_Number = float | Decimal | None
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
        self.key = key
        self._everything = everything
        self._first_lines = FirstLines(self._head)

    def add(self, piece: bytes) -> None:
        """A list of whole events."""
        if self.columns.tail is not None:
            self.columns.tail += b"," + piece[1:-1]
            return
        if self._appends_laid_out(piece) or self._appends(piece):
            return
        repaired = mended(piece)
        if repaired != piece and self._appends(repaired):
            self.columns.losses.mended += 1
            return
        self._salvage(piece[1:-1])

    def end(self, rest: bytes) -> None:
        """The last of the text: events, the end of the list, metadata."""
        if self.columns.tail is not None:
            self.columns.tail += b"," + rest
        else:
            self._salvage(rest)
        self.columns.losses.is_cut_short |= self.columns.tail is None

    def _salvage(self, events: bytes) -> None:
        """What can be read of events among which the list ends, or that are damaged."""
        end = list_end(events)
        if end is None:
            repaired = mended(events)
            self.columns.losses.mended += repaired != events
            events, end = repaired, list_end(repaired)
        if end is not None:
            self.columns.tail = events[end:]
            events = events[: end - 1]
        if events.strip() and not self._appends(b"[" + events + b"]"):
            self._salvage_singly(events)

    def _appends_laid_out(self, piece: bytes) -> bool:
        """The same as `_appends`, faster, where all events have Kineto's layout."""
        rows = None if self._everything else rows_in_layout(piece, self._first_lines)
        if rows is None:
            return False
        try:
            args = _decoded(rows.args)
        except _UNREADABLE:
            return False
        self._store(rows, args)
        return True

    def _head(self, line: bytes) -> Head:
        try:
            event = _ONE_EVENT.decode(b"{" + line.removesuffix(b",") + b"}")
        except _UNREADABLE:
            return Head(NOT_READ)
        if event.ph != "X" or event.cat not in _CATEGORIES:
            return Head(NOT_KEPT)
        columns, place = self.columns, (event.pid, event.tid)
        return Head(_CODES[event.cat], columns.names[event.name], columns.threads[place])

    def _appends(self, text: bytes) -> bool:
        """Whether all of a list of events could be read, and is now in the columns."""
        try:
            self._append(_EVENTS.decode(text), text)
        except _UNREADABLE:
            return False
        return True

    def _salvage_singly(self, events: bytes) -> None:
        lost = 0
        for text in single_events(events, self.key):
            repaired = mended(text)
            try:
                self._append([_ONE_EVENT.decode(repaired)], b"[" + repaired + b"]")
            except _UNREADABLE:
                lost += 1
        if lost:
            self.columns.losses.counts[Loss.NOT_READ] += lost

    def _append(self, events: Sequence[_Event], text: bytes) -> None:
        kept = self._kept(events)
        if self._everything:
            self._note_for_hta(events, kept)
        starts_us = _floats([event.ts for event in kept])
        if not _are_exact(kept, starts_us):
            self._append_exact(text)
            return
        is_possible = (starts_us >= 0) & (starts_us <= LATEST_NS / 1000)
        known_us = np.where(is_possible, starts_us, _NO_TIME)
        whole = np.floor(known_us)
        fraction_ns = np.rint((known_us - whole) * 1000)
        starts_ns = whole.astype(np.int64) * 1000 + fraction_ns.astype(np.int64)
        starts_ns[~is_possible & ~np.isnan(starts_us)] = _IMPOSSIBLE
        self._append_rows(kept, starts_ns)

    def _note_for_hta(self, events: Sequence[_Event], kept: Sequence[_AnyEvent]) -> None:
        columns = self.columns
        if not columns.has_float_times:
            columns.has_float_times = any(type(event.ts) is not int for event in events)
        if not columns.pieces:
            columns.has_first_event = bool(kept) and kept[0] is events[0]

    def _append_exact(self, text: bytes) -> None:
        """The same, of times that no float64 can tell."""
        kept = self._kept(_EXACT_EVENTS.decode(text))
        starts_ns = np.array([_exact_ns(event.ts) for event in kept], dtype=np.int64)
        self._append_rows(kept, starts_ns)

    def _kept(self, events: Sequence[_AnyEvent]) -> list[_AnyEvent]:
        if self._everything:
            return [each for each in events if each.ph == "X" and each.cat not in _NOT_FOR_HTA]
        # In place of a method: this is done for each of millions of events.
        known = _CATEGORIES
        return [event for event in events if event.cat in known and event.ph == "X"]

    def _append_rows(self, events: Sequence[_AnyEvent], starts_ns: Nanoseconds) -> None:
        """Those that have a time and a duration."""
        durations_us = _floats([event.dur for event in events])
        has_time = starts_ns > 0
        lasts = (durations_us >= 0) & (durations_us <= LONGEST_NS / 1000)
        if not (good := has_time & lasts).all():
            counts = self.columns.losses.counts
            counts[Loss.NO_TIME] += int((starts_ns == _NO_TIME).sum())
            counts[Loss.TIME] += int((starts_ns == _IMPOSSIBLE).sum())
            has_duration = ~np.isnan(durations_us)
            counts[Loss.NO_DURATION] += int((has_time & ~has_duration).sum())
            counts[Loss.DURATION] += int((has_time & has_duration & ~lasts).sum())
            events = [event for event, is_good in zip(events, good, strict=True) if is_good]
            starts_ns, durations_us = starts_ns[good], durations_us[good]
        ends_ns = starts_ns + np.rint(durations_us * 1000).astype(np.int64)
        count = len(events)
        codes = np.fromiter(map(_code_of, [each.cat for each in events]), np.int8, count)
        names = map(self.columns.names.__getitem__, [each.name for each in events])
        places = zip([each.pid for each in events], [each.tid for each in events], strict=True)
        threads = map(self.columns.threads.__getitem__, places)
        name_ids, thread_ids = (np.fromiter(each, np.int32, count) for each in (names, threads))
        raw = [events[row].args for row in self._rows_with_args(codes).tolist()]
        rows = Rows(codes, starts_ns, ends_ns, name_ids, thread_ids, raw)
        try:
            args = _decoded(raw)
        except _UNREADABLE:
            args = [self._own_args(bytes(each)) for each in raw]
        self._store(rows, args)

    def _rows_with_args(self, codes: npt.NDArray[np.int8]) -> npt.NDArray[np.intp]:
        """The events of the GPU and the calls; the arguments of others tell nothing."""
        return np.flatnonzero(codes <= (_OTHER if self._everything else _LAUNCH))

    def _store(self, events: Rows, args: Sequence[_Args]) -> None:
        columns, count = self.columns, events.categories.size
        correlations = np.full(count, UNKNOWN, dtype=np.int64)
        streams = np.full(count, UNKNOWN, dtype=np.int32)
        rows = self._rows_with_args(events.categories)
        correlations[rows] = self._fitting([each.correlation for each in args], np.int64)
        numbers = [
            each.stream if type(each.stream) is int else _stream_number(each.stream)
            for each in args
        ]
        streams[rows] = self._fitting(numbers, np.int32)
        for row, each, text in zip(rows.tolist(), args, events.args, strict=True):
            if each.collective is not None:
                columns.collectives[columns.count + row] = self._collective(bytes(text))
        columns.pieces.append(Piece(*events[:-1], correlations, streams))
        columns.count += count

    def _fitting(
        self, numbers: Sequence[int], dtype: type[np.signedinteger]
    ) -> npt.NDArray[np.signedinteger]:
        """As a column, in which those that it cannot hold are unknown."""
        try:
            return np.array(numbers, dtype=dtype)
        except OverflowError:
            limits = np.iinfo(dtype)
            fitting = [each if limits.min <= each <= limits.max else UNKNOWN for each in numbers]
            lost = sum(one != other for one, other in zip(numbers, fitting, strict=True))
            self.columns.losses.counts[Loss.ARGS] += lost
            return np.array(fitting, dtype=dtype)

    def _own_args(self, raw: bytes) -> _Args:
        try:
            return _ARGS.decode(mended(raw))
        except _UNREADABLE:
            self.columns.losses.counts[Loss.ARGS] += 1
            return _Args()

    def _collective(self, raw: bytes) -> CollectiveArgs:
        with suppress(*_UNREADABLE):
            return _COLLECTIVE.decode(raw)
        with suppress(*_UNREADABLE):
            return _COLLECTIVE.decode(mended(raw))
        self.columns.losses.counts[Loss.ARGS] += 1
        return CollectiveArgs()


def _decoded(args: Sequence[bytes | msgspec.Raw]) -> list[_Args]:
    return _ALL_ARGS.decode(b"[" + b",".join(args) + b"]")


def _are_exact(events: Sequence[_AnyEvent], starts_us: npt.NDArray[np.float64]) -> bool:
    """Whether floats tell the times to the nanosecond: early ones, and whole microseconds."""
    if not (starts_us > _LONGEST_EXACT_MICROSECONDS).any():
        return True
    return all(type(event.ts) is int and event.ts < _LONGEST_EXACT_INT for event in events)


def _floats(numbers: Sequence[_Number]) -> npt.NDArray[np.float64]:
    """NaN for what is unknown; what no float can hold is infinite."""
    try:
        return np.array(numbers, dtype=np.float64)
    except OverflowError:
        return np.array([_float(each) for each in numbers], dtype=np.float64)


def _float(number: _Number) -> float:
    try:
        return np.nan if number is None else float(number)
    except OverflowError:
        return np.inf


def _exact_ns(time_us: _Number) -> int:
    if time_us is None:
        return _NO_TIME
    # Compared first: to round a number of many digits takes long.
    return round(time_us * 1000) if 0 <= time_us <= LATEST_NS // 1000 else _IMPOSSIBLE


def _stream_number(stream: float | str) -> int:
    try:
        return int(stream)
    except (OverflowError, ValueError):
        return UNKNOWN
