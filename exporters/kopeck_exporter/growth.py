"""A total of our own over a counter of the driver, which may be reset, or tell nonsense."""

from dataclasses import dataclass

_LONGEST_SECONDS = 10 * 365 * 86_400.0
"""No driver was loaded longer ago: what a counter cannot have reached since is a sentinel."""


@dataclass(slots=True)
class Growth:
    """How far a counter has grown since its first reading.

    A step back is a reset and counts nothing. A step beyond what `most_per_second` allows is no
    reading: the total is unknown until the counter is plausible again.
    """

    most_per_second: float
    slack_seconds: float = 2.0
    """The driver updates its counters now and then."""
    total: float = 0.0
    _reading: float | None = None
    _read_at: float = 0.0

    def after(self, reading: float, now_seconds: float) -> float | None:
        """The total with this reading; None if it cannot be true."""
        if not 0 <= reading <= self.most_per_second * _LONGEST_SECONDS:  # NaN fails it too
            return None
        step, seconds = self._step(reading, now_seconds)
        self._reading, self._read_at = reading, now_seconds
        if step > self.most_per_second * (seconds + self.slack_seconds):
            return None
        self.total += max(0.0, step)
        return self.total

    def _step(self, reading: float, now_seconds: float) -> tuple[float, float]:
        if self._reading is None:
            return 0.0, 0.0
        return reading - self._reading, now_seconds - self._read_at
