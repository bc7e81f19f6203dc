"""How often windows may be recorded."""

FIRST_SECONDS = 60.0
"""After the first steady step: figures soon, but not of a training that still settles."""
LEAST_SECONDS_ON_GPUS = 60.0
"""CUPTI is torn down some time after a window, and a window that begins meanwhile would race it."""
PERIODS_PER_COST = 200.0
"""Windows cost half a percent of the time at most."""


def first_seconds(every_seconds: float) -> float:
    """From the first steady step to the first window."""
    return min(every_seconds, FIRST_SECONDS)


def period_seconds(every_seconds: float, cost_seconds: float, *, is_on_gpu: bool) -> float:
    """From the begin of one window to that of the next one.

    `cost_seconds` is what the last one cost; 0 while only the first is known, which also loads
    what the later ones find.
    """
    least_seconds = LEAST_SECONDS_ON_GPUS if is_on_gpu else 0.0
    return max(every_seconds, least_seconds, PERIODS_PER_COST * cost_seconds)
