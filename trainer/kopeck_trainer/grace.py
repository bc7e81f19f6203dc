"""The time that a pod is given to end."""

from dataclasses import dataclass
from time import monotonic


@dataclass
class Grace:
    """`seconds` from a stop to the kubelet's SIGKILL; one that has not come may come any time."""

    seconds: float
    began_at: float | None = None

    def begin(self) -> None:
        """The pod was told to stop now."""
        self.began_at = monotonic()

    def seconds_before(self, margin_seconds: float) -> float:
        """How long something may take from now on that leaves `margin_seconds`."""
        passed = 0.0 if self.began_at is None else monotonic() - self.began_at
        return max(0.0, self.seconds - passed - margin_seconds)
