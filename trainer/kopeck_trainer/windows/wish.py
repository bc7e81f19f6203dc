"""Rank 0's wish for a window, as the time passes; all ranks learn of it."""

from collections.abc import Callable
from time import monotonic

from kopeck_trainer.windows.period import first_seconds, period_seconds


class WindowWish:
    """Read at every step, answered by the next window.

    `is_held` is asked while one is due: whether something goes on that no window should show.
    """

    def __init__(
        self,
        every_seconds: float | None,
        *,
        is_on_gpu: bool = False,
        is_held: Callable[[], bool] = lambda: False,
        now: Callable[[], float] = monotonic,
    ) -> None:
        """None: never."""
        self._every_seconds = every_seconds
        self._is_on_gpu = is_on_gpu
        self._is_held = is_held
        self._now = now
        self._due_at: float | None = None
        self._begun_at = 0.0
        self._windows = 0

    @property
    def is_set(self) -> bool:
        return self._due_at is not None and self._now() >= self._due_at and not self._is_held()

    def steady(self) -> None:
        """A step has ended after the warm-up."""
        if self._due_at is None and self._every_seconds is not None:
            self._due_at = self._now() + first_seconds(self._every_seconds)

    def begun(self) -> None:
        """A window begins now."""
        self._begun_at = self._now()
        self._windows += 1
        self._wait(0.0)

    def cost(self, seconds: float) -> float | None:
        """What the last window cost. The period that this makes longer than it was asked for."""
        period = self._wait(0.0 if self._windows == 1 else seconds)
        is_longer = self._every_seconds is not None and period > self._every_seconds
        return period if is_longer else None

    def _wait(self, cost_seconds: float) -> float:
        if self._every_seconds is None:
            return 0.0
        period = period_seconds(self._every_seconds, cost_seconds, is_on_gpu=self._is_on_gpu)
        self._due_at = self._begun_at + period
        return period
