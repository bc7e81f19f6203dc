"""Cutting the text of a trace into metadata and pieces of whole events, without parsing it.

The text is `{metadata, "traceEvents": [event, …], metadata}`, or the list alone. Where a piece may
be cut is guessed by the key that events begin with; that every piece then parses proves the guess.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_LIST_BEGINS = re.compile(rb'"traceEvents"\s*:\s*\[|\A\s*\[')
_FIRST_KEY = re.compile(rb'\s*\{\s*("[^"\\]+")\s*:')
_BETWEEN_EVENTS = re.compile(rb"\}(\s*,\s*)\{\s*\Z")
_LONGEST_SPACE = 64
"""Bytes between an event's end and the first key of the next one: an indented line or two."""


@dataclass(frozen=True)
class Head:
    """What stands before the events."""

    metadata: bytes
    """The text of an object without its end, up to a comma; empty if there is none."""
    events_at: int
    """Offset of the first event in the text."""


def head_of(text: bytes) -> Head | None:
    """None where the text does not come to its events."""
    found = _LIST_BEGINS.search(text)
    if found is None:
        return None
    return Head(text[: found.start()].strip(), found.end())


def first_key(events: bytes) -> bytes:
    """The key that the first event begins with, in quotation marks; `"ph"` if there is none."""
    found = _FIRST_KEY.match(events)
    return found[1] if found else b'"ph"'


@dataclass(frozen=True)
class Cut:
    """A place between two events."""

    end: int
    """Behind the event before it."""
    begin: int
    """Where the next one begins."""


def last_cut(text: bytes, key: bytes) -> Cut | None:
    """The last place between two events that begin with `key`."""
    at = len(text)
    while (at := text.rfind(key, 0, at)) > 0:
        if (cut := _cut_before(text, at)) is not None:
            return cut
    return None


def first_cut(text: bytes, key: bytes) -> Cut | None:
    """The first place between two events that begin with `key`."""
    at = -1
    while (at := text.find(key, at + 1)) > 0:
        if (cut := _cut_before(text, at)) is not None:
            return cut
    return None


def _cut_before(text: bytes, at: int) -> Cut | None:
    found = _BETWEEN_EVENTS.search(text, max(0, at - _LONGEST_SPACE), at)
    return Cut(found.start(1), found.end(1)) if found else None


def pieces(blocks: Iterator[bytes], key: bytes) -> Iterator[bytes]:
    """Lists of whole events; the last piece is what follows the last place to cut at, as it is."""
    rest = b""
    for block in blocks:
        cut = last_cut(block, key)
        if cut is None:
            rest += block
            continue
        yield b"".join((b"[", rest, memoryview(block)[: cut.end], b"]"))
        rest = block[cut.begin :]
    yield rest


def single_events(events: bytes, key: bytes) -> Iterator[bytes]:
    """Events that are joined by commas, one by one."""
    while (cut := first_cut(events, key)) is not None:
        yield events[: cut.end]
        events = events[cut.begin :]
    yield events
