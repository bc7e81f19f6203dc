"""Rank 0's wish to save, as the time passes or the operator asks; all ranks learn of it."""

from collections.abc import Callable
from pathlib import Path
from time import monotonic

from kopeck_trainer.checkpoint_request import checkpoint_request

POLL_SECONDS = 1.0
"""Between two looks for a request."""


class SaveWish:
    """Read at every step, answered by the next checkpoint, whatever was its reason."""

    def __init__(
        self,
        every_seconds: float | None,
        annotations: Path | None,
        now: Callable[[], float] = monotonic,
    ) -> None:
        self._every_seconds = every_seconds
        self._annotations = annotations
        self._now = now
        self._saved_at = self._next_look_at = now()
        self._request: str | None = None
        self._answered: str | None = None

    @property
    def is_set(self) -> bool:
        now = self._now()
        if now >= self._next_look_at:
            self._next_look_at = now + POLL_SECONDS
            self._request = self._looked_up() or self._request
        is_due = self._every_seconds is not None and now - self._saved_at >= self._every_seconds
        return is_due or self._request != self._answered

    def answered(self) -> str | None:
        """A checkpoint begins now. The request that it is the answer to, if there is one."""
        self._saved_at = self._now()
        is_new = self._request != self._answered
        self._answered = self._request
        return self._request if is_new else None

    def _looked_up(self) -> str | None:
        return checkpoint_request(self._annotations) if self._annotations else None
