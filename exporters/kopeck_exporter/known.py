"""Sums and maxima of what may be unknown: without one of the values they would say too little."""

from collections.abc import Iterable


def total(values: Iterable[float | None]) -> float | None:
    """None if one is unknown."""
    known = _if_all_known(values)
    return None if known is None else sum(known)


def largest(values: Iterable[float | None]) -> float | None:
    """None if one is unknown. Raises ValueError if there are none at all."""
    known = _if_all_known(values)
    return None if known is None else max(known)


def _if_all_known(values: Iterable[float | None]) -> list[float] | None:
    each = list(values)
    known = [value for value in each if value is not None]
    return known if len(known) == len(each) else None
