"""A trace as long as one likes, by repeating the steps of a real one, one behind the other."""

import gzip
import math
import re
from pathlib import Path

_NUMBERS = re.compile(rb'("ts": |"correlation": |"External id": |"id": )(\d+)')
_TIME = re.compile(rb'"ts": ([\d.]+)(?:, "dur": ([\d.]+))?')


def write_long_trace(source: Path, target: Path, size_bytes: int, rank: int = 0) -> None:
    """The steps of `source` (as Kineto writes it, packed) until there are `size_bytes`."""
    text = gzip.decompress(source.read_bytes())
    begin = text.index(b'"traceEvents": [') + len(b'"traceEvents": [')
    end = text.rindex(b"\n  ],")
    head = re.sub(rb'"rank": \d+', b'"rank": %d' % rank, text[:begin])
    steps = text[begin:end]
    span_us = _span_us(steps)
    most_id = max(int(found[2]) for found in _NUMBERS.finditer(steps) if found[1] != b'"ts": ')
    with target.open("wb") as opened:
        opened.write(head)
        for number in range(-(-size_bytes // len(steps))):
            opened.write(b"," if number else b"")
            opened.write(_shifted(steps, number * span_us, number * (most_id + 1)))
        opened.write(text[end:])


def _span_us(steps: bytes) -> int:
    times = [
        (float(found[1]), float(found[1]) + float(found[2] or 0)) for found in _TIME.finditer(steps)
    ]
    return math.ceil(max(end for _, end in times) - min(start for start, _ in times))


def _shifted(steps: bytes, time_us: int, ids: int) -> bytes:
    def shifted(found: re.Match[bytes]) -> bytes:
        by = time_us if found[1] == b'"ts": ' else ids
        return found[1] + b"%d" % (int(found[2]) + by)

    return _NUMBERS.sub(shifted, steps)
