"""The hourly rate, as the operator hands it to the pod: an annotation in a downward API file."""

import math
import re
from pathlib import Path

ANNOTATION = "kopeck.dev/hourly-rate-dollars"

_LINE = re.compile(rf'^{re.escape(ANNOTATION)}="(.*)"$', re.MULTILINE)
_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?", re.ASCII)


class InvalidRateError(Exception):
    """The annotation is there, and is no price."""


def hourly_rate_dollars(annotations: Path) -> float | None:
    """US dollars per hour; None while the price is unknown.

    The kubelet writes one `key="value"` line per annotation, escaped, and swaps the file as a
    whole; a number needs no escapes. Raises InvalidRateError, or OSError or UnicodeDecodeError
    if the file cannot be read.
    """
    try:
        text = annotations.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    line = _LINE.search(text)
    if line is None or not line[1]:
        return None
    if not _NUMBER.fullmatch(line[1]) or not math.isfinite(rate := float(line[1])):
        raise InvalidRateError(f"{ANNOTATION}: {line[1]!r} is no number of dollars; write 3.2")
    return rate
