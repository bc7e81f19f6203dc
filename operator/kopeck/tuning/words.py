"""Figures of a tuning as people read them, in its table and its picture."""

from kopeck.tuning.outcome import MemoryKind

MEMORY_LABELS: dict[MemoryKind, str] = {
    "device": "Peak GPU memory",
    "resident": "Peak host memory",
}
_GIB = 2**30
_MIB = 2**20


def readable_seconds(seconds: float) -> str:
    """Three significant digits, as 12.3 ms or 1.23 s."""
    return f"{seconds * 1000:.3g} ms" if seconds < 0.9995 else f"{_short(seconds)} s"


def readable_bytes(count: float) -> str:
    """Three significant digits, as 731 MiB or 1.2 GiB."""
    return f"{count / _MIB:.0f} MiB" if count < _GIB else f"{_short(count / _GIB)} GiB"


def _short(number: float) -> str:
    return f"{number:.3g}" if number < 1000 else f"{number:.0f}"
