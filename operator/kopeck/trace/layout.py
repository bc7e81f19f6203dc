"""Events in the very lines that Kineto writes, read as columns instead of one by one.

      {
        "ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7,
        "ts": 5100522580318.076, "dur": 37.375,
        "args": {
          "stream": 7, "correlation": 57
        }
      },

The first line of an event tells its category, name and thread: a trace has few different ones, and
each is parsed once. Times are digits at known places. Of flows between events, which nothing here
needs, only the phase is looked at, and of operators no arguments.

A piece that is laid out in any other way is left to the general decoder. Of a piece that is JSON
both say the same, by this: no string holds the end of a line; all lines but an event's first, its
arguments' and those of flows are compared byte by byte; and there are no braces beside theirs and
those in first lines, so that each event is one of the list and hides none inside it. Damage in what
is not looked at is neither mended nor told.
"""

from array import array
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from kopeck.trace.events import LATEST_NS, LONGEST_NS, Category
from kopeck.trace.intervals import Nanoseconds

NOT_KEPT, NOT_READ = -1, -2
"""In place of a category: of events that nothing needs, and of a line that cannot be read."""

_Places = npt.NDArray[np.intp]
_Bytes = npt.NDArray[np.uint8]

_CLOSING, _OPENING = b"  },\n", b"  {\n"
_BETWEEN, _PHASE = b'  },\n  {\n    "ph', b'": "%c", '
"""From the end of one event to the phase of the next: words of eight bytes, as all that follow."""
_FIRST, _LAST = b'[{\n    "ph": "', b"\n  }]"
_COMPLETE, _FLOWS = ord("X"), b"stf"
_ARGS, _ARGS_END = b',\n    "args": {\n', b"    }\n  "
_TIME, _DURATION = b'    "ts": ', b', "dur": '
_LINES, _LINES_WITHOUT_ARGS = 7, 4
_LONGEST_TIME, _LONGEST_DURATION = 20, 16
"""With the dot: what fits 64 bits, and what the general decoder's floats tell exactly."""
_SHORTEST = len("0.000")
_PADDING = bytes(len(_TIME) + _LONGEST_TIME + len(_DURATION))
"""Behind the text, so that all that is looked at can be read behind any line's begin."""


class Rows(NamedTuple):
    """Events that are kept, in order of the text."""

    categories: npt.NDArray[np.int8]
    starts_ns: Nanoseconds
    ends_ns: Nanoseconds
    name_ids: npt.NDArray[np.int32]
    threads: npt.NDArray[np.int32]
    args: Sequence[bytes | msgspec.Raw]
    """JSON objects, of the events of the GPU and of the calls alone."""


class Head(NamedTuple):
    """What the first line of an event tells; name and thread by their numbers."""

    category: int
    name_id: int = 0
    thread: int = 0


class FirstLines(dict[bytes, int]):
    """Numbers of first lines. What a new one tells is read by the function given."""

    def __init__(self, read: Callable[[bytes], Head]) -> None:
        super().__init__()
        self._read = read
        self._columns = array("b"), array("i"), array("i"), array("i")

    def __missing__(self, line: bytes) -> int:
        self[line] = number = len(self)
        for column, value in zip(self._columns, (*self._read(line), line.count(b"{")), strict=True):
            column.append(value)
        return number

    def told(self, numbers: npt.NDArray[np.int32]) -> tuple[npt.NDArray[np.signedinteger], ...]:
        """Of each line its category, name, thread, and how many braces it opens."""
        return tuple(np.asarray(column)[numbers] for column in self._columns)


class _Form:
    """Text in which `0` stands for any digit; all digits are those of one number."""

    def __init__(self, form: bytes) -> None:
        self._form = np.frombuffer(form, np.uint8)
        is_digit = self._form == ord("0")
        self._limits = np.where(is_digit, 9, 0).astype(np.uint8)
        places = np.flatnonzero(is_digit)
        self._number = slice(places[0], places[-1] + 1)
        weights = np.zeros(self._form.size, dtype=np.int64)
        weights[places] = 10 ** np.arange(places.size - 1, -1, -1, dtype=np.int64)
        self._weights = weights[self._number]

    def numbers(self, texts: _Bytes) -> Nanoseconds | None:
        """One of each row; None if not all have this form."""
        values = texts - self._form  # Below `0` they wrap around, and are too large.
        if (values > self._limits).any():
            return None
        return values[:, self._number] @ self._weights


def _word(text: bytes) -> int:
    return int.from_bytes(text, "little")


class _Lines:
    """The lines of a piece and their numbers; before the first stands the end of an event."""

    def __init__(self, piece: bytes) -> None:
        self.text = text = b"".join((_CLOSING, b" ", piece, b",\n", _PADDING))
        self.begins = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n")) + 1
        self.words = np.ndarray(len(text) - 7, "<u8", text, strides=(1,))
        """At each byte the eight from there."""

    def are(self, places: _Places, expected: bytes) -> bool:
        """Whether these words stand at all of the places."""
        return all(
            bool((self.words[places + at] == _word(expected[at : at + 8])).all())
            for at in range(0, len(expected), 8)
        )

    def at(self, places: _Places, width: int) -> _Bytes:
        """As many bytes from each place, one row for each."""
        shape = len(self.text) - width + 1, width
        return np.ndarray(shape, np.uint8, self.text, strides=(1, 1))[places]

    def cut(self, begins: _Places, ends: _Places) -> list[bytes]:
        text = self.text
        return [text[begin:end] for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)]


def rows_in_layout(piece: bytes, first_lines: FirstLines) -> Rows | None:
    """The events of a piece that is laid out as Kineto does; None of any other."""
    if not piece.startswith(_FIRST) or not piece.endswith(_LAST):
        return None
    lines = _Lines(piece)
    found = _complete_events(lines)
    if found is None:
        return None
    events, has_args, braces = found
    heads = lines.cut(lines.begins[events + 1], lines.begins[events + 2] - 1)
    numbers = np.fromiter(map(first_lines.__getitem__, heads), np.int32, count=len(heads))
    categories, name_ids, threads, braces_in_heads = first_lines.told(numbers)
    all_braces = np.count_nonzero(np.frombuffer(piece, np.uint8) == ord("{"))
    if (categories == NOT_READ).any() or braces + braces_in_heads.sum() != all_braces:
        return None
    kept = categories >= 0
    is_asked = categories[kept] < Category.OPERATOR
    times = _times(lines, events[kept] + 2)
    if times is None or not has_args[kept][is_asked].all():
        return None
    asked = events[kept][is_asked]
    # From the brace at the end of one line to the brace at the end of another.
    args = lines.cut(lines.begins[asked + 4] - 2, lines.begins[asked + 6] - 1)
    return Rows(categories[kept], *times, name_ids[kept], threads[kept], args)


def _complete_events(lines: _Lines) -> tuple[_Places, npt.NDArray[np.bool_], int] | None:
    """The number of the first line of each event with a duration, and whether it has arguments.

    With it, how many braces all events open beside those inside of lines. None where the lines are
    not as they should be.
    """
    opening = np.flatnonzero(np.diff(lines.begins) == len(_OPENING))
    if not opening.size or opening[0] != 0:
        return None
    places = lines.begins[opening] - len(_CLOSING)
    phases = lines.words[places + len(_BETWEEN)]
    is_complete = phases == _word(_PHASE % _COMPLETE)
    is_flow = np.logical_or.reduce([phases == _word(_PHASE % flow) for flow in _FLOWS])
    sizes = np.diff(opening, append=lines.begins.size - 1)
    has_args = is_complete & (sizes == _LINES)
    is_short = (is_complete | is_flow) & (sizes == _LINES_WITHOUT_ARGS)
    with_args = opening[has_args]
    if (
        not (has_args | is_short).all()
        or not lines.are(places[1:], _BETWEEN)
        or not lines.are(lines.begins[with_args + 3] - 2, _ARGS)
        or not lines.are(lines.begins[with_args + 5], _ARGS_END)
    ):
        return None
    return opening[is_complete], has_args[is_complete], opening.size + with_args.size


def _times(lines: _Lines, numbers: _Places) -> tuple[Nanoseconds, Nanoseconds] | None:
    """Begins and ends, as the lines of these numbers tell them; None if one is written otherwise.

    All begins of a piece have as many digits, unless they pass a power of ten: that is otherwise.
    """
    if not numbers.size:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    begins, ends = lines.begins[numbers], lines.begins[numbers + 1] - 1
    digits = lines.text.find(b",", begins[0]) - int(begins[0]) - len(_TIME)
    if not _SHORTEST <= digits <= _LONGEST_TIME:
        return None
    form, width = _form_of_times(digits)
    starts_ns = form.numbers(lines.at(begins, width))
    widths = ends - begins - width - (lines.at(ends - 1, 1)[:, 0] == ord(","))
    if starts_ns is None or widths.min() < _SHORTEST or widths.max() > _LONGEST_DURATION:
        return None
    texts = lines.at(begins + (width - _LONGEST_DURATION) + widths, _LONGEST_DURATION)
    is_part = np.arange(_LONGEST_DURATION, 0, -1) <= widths[:, np.newaxis]
    durations_ns = _DURATIONS.numbers(np.where(is_part, texts, _NO_DURATION))
    if durations_ns is None or durations_ns.max() > LONGEST_NS:
        return None
    if starts_ns.min() <= 0 or starts_ns.max() > LATEST_NS:  # Or beyond 64 bits, which is below 0.
        return None
    return starts_ns, starts_ns + durations_ns


_NO_DURATION = np.frombuffer(b"000000000000.000", np.uint8)
_DURATIONS = _Form(_NO_DURATION.tobytes())


@cache
def _form_of_times(digits: int) -> tuple[_Form, int]:
    """A line of times up to its duration, with its length; `digits` of the begin with its dot."""
    form = _TIME + b"0" * (digits - 4) + b".000" + _DURATION
    return _Form(form), len(form)
