"""Dollars per sample."""

from decimal import Decimal

_SECONDS_PER_HOUR = Decimal(3600)


def all_in(spent: Decimal | None, samples_kept: int | None) -> Decimal | None:
    """Dollars spent per sample kept; None where either is unknown or no sample is kept."""
    if spent is None or not samples_kept:
        return None
    return spent / samples_kept


def marginal(hourly_rate: Decimal | None, samples_per_second: float | None) -> Decimal | None:
    """Dollars of one more sample at the present rate and speed; None where either is unknown."""
    if hourly_rate is None or not samples_per_second or samples_per_second < 0:
        return None
    return hourly_rate / (Decimal(str(samples_per_second)) * _SECONDS_PER_HOUR)
