"""An axis of a picture: from values to pixels, with round numbers for ticks."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count, takewhile
from math import ceil, floor, log10

_WANTED_TICKS = 6


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Linear, from the values `low`–`high` to the pixels `start`–`end`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        ratio = (value - self.low) / (self.high - self.low)
        return self.start + ratio * (self.end - self.start)

    def ticks(self, unit: float) -> list[float]:
        """Values that are round in multiples of `unit`."""
        step = _round_step((self.high - self.low) / unit) * unit
        multiples = (number * step for number in count(ceil(self.low / step)))
        return list(takewhile(lambda value: value <= self.high, multiples))


def scale_of(values: Sequence[float], start: float, end: float) -> Scale:
    """Room for all values, more above the highest, for its label.

    At least one value, all above zero.
    """
    spread = (max(values) - min(values)) or max(values)
    low = max(0.0, min(values) - 0.15 * spread)
    return Scale(low=low, high=max(values) + 0.25 * spread, start=start, end=end)


def _round_step(span: float) -> float:
    """1, 2 or 5 times a power of ten, about a sixth of `span`."""
    rough = span / _WANTED_TICKS
    power: float = 10.0 ** floor(log10(rough))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
