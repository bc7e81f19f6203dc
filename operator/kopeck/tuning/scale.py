"""An axis of a picture: from values to pixels, with round numbers for ticks."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log, log10

_WANTED_TICKS = 6
_LARGEST_EVEN_RATIO = 8
"""Of an axis with ticks at even steps, which lie too close together at the end of a longer one."""


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Logarithmic, from the values `low`–`high`, above zero, to the pixels `start`–`end`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        ratio = log(value / self.low) / log(self.high / self.low)
        return self.start + ratio * (self.end - self.start)

    def ticks(self, unit: float) -> list[float]:
        """Values that are round in multiples of `unit`."""
        low, high = self.low / unit, self.high / unit
        if high / low > _LARGEST_EVEN_RATIO:
            powers = range(floor(log10(low)), ceil(log10(high)))
            rounds = [factor * 10.0**power for power in powers for factor in (1, 2, 5)]
        else:
            step = _round_step(high - low)
            rounds = [number * step for number in range(ceil(low / step), floor(high / step) + 1)]
        return [value * unit for value in rounds if low <= value <= high]


def scale_of(values: Sequence[float], start: float, end: float) -> Scale:
    """Room for all values and, on both sides, for labels. At least one value, all above zero."""
    ratio = max(values) / min(values)
    margin = 1.5 if ratio == 1 else ratio**0.2
    return Scale(low=min(values) / margin, high=max(values) * margin, start=start, end=end)


def _round_step(span: float) -> float:
    """1, 2 or 5 times a power of ten, about a sixth of `span`."""
    rough = span / _WANTED_TICKS
    power: float = 10.0 ** floor(log10(rough))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
