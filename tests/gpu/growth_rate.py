"""How fast a counter grew that is read less often than it is scraped."""

from collections.abc import Sequence
from itertools import pairwise

Scrape = tuple[float, float]
"""When, in seconds, and the counter's value then."""


def growth_per_second(scrapes: Sequence[Scrape]) -> float | None:
    """Between the first and the last scrape that showed a new value; None without two of them.

    Not over the time between the first and the last scrape: the readings that these show began
    earlier, by up to the time between two readings.
    """
    changes = changed(scrapes)
    if len(changes) < 2:
        return None
    (began, first), (ended, last) = changes[0], changes[-1]
    return (last - first) / (ended - began)


def changed(scrapes: Sequence[Scrape]) -> list[Scrape]:
    """Those that showed another value than the one before them."""
    return [after for before, after in pairwise(scrapes) if after[1] != before[1]]


def falls(scrapes: Sequence[Scrape]) -> int:
    """How often the counter went back, which none may."""
    return sum(after[1] < before[1] for before, after in pairwise(scrapes))
