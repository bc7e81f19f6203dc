"""What a process spends its wall time on."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from kopeck_exporter.names import PHASES

UNDECIDED = "undecided"
"""For time of which it turns out later what it was; until then it is in no phase."""


class PhaseClock:
    """Exactly one phase runs at any moment, so the phases add up to the wall time.

    A phase entered inside another pauses it. Safe to read, and to switch, from any thread.
    """

    def __init__(
        self, phase: str, now: Callable[[], float] = monotonic, *, since: float | None = None
    ) -> None:
        """The first phase began at `since`, in the time of `now`; without it, now."""
        self._now = now
        self._lock = threading.Lock()
        self._seconds = dict.fromkeys((*PHASES, UNDECIDED), 0.0)
        self._running = [_known(phase)]
        self._since = now() if since is None else since

    @property
    def phase(self) -> str:
        return self._running[-1]

    @property
    def decided_phase(self) -> str:
        """The running one; for undecided time the one that it interrupted."""
        with self._lock:
            return next(phase for phase in reversed(self._running) if phase != UNDECIDED)

    def seconds(self) -> dict[str, float]:
        """Seconds by phase since the clock began, the running one included."""
        with self._lock:
            self._book()
            return {phase: self._seconds[phase] for phase in PHASES}

    def seconds_without(self, phase: str) -> float:
        """Wall time since the clock began, without that of one phase."""
        with self._lock:
            self._book()
            return sum(self._seconds.values()) - self._seconds[phase]

    @property
    def undecided_seconds(self) -> float:
        """Not yet given to a phase."""
        with self._lock:
            self._book()
            return self._seconds[UNDECIDED]

    def decide(self, phase: str, seconds: float) -> None:
        """So much of the undecided time was `phase`."""
        with self._lock:
            self._seconds[UNDECIDED] -= seconds
            self._seconds[_known(phase)] += seconds

    def switch(self, phase: str) -> None:
        """End the running phase; `phase` takes its place."""
        with self._lock:
            self._book()
            self._running[-1] = _known(phase)

    def end(self) -> None:
        """The process is about to leave: it is idle now, and nothing will be decided any more."""
        phase = self.decided_phase
        self.decide(phase, self.undecided_seconds)
        self.switch("idle")

    def enter(self, phase: str) -> None:
        with self._lock:
            self._book()
            self._running.append(_known(phase))

    def leave(self) -> None:
        """Back to the phase that was running before the last `enter`."""
        with self._lock:
            self._book()
            self._running.pop()

    @contextmanager
    def during(self, phase: str) -> Iterator[None]:
        self.enter(phase)
        try:
            yield
        finally:
            self.leave()

    def _book(self) -> None:
        now = self._now()
        self._seconds[self._running[-1]] += now - self._since
        self._since = now


def _known(phase: str) -> str:
    if phase not in PHASES and phase != UNDECIDED:
        raise ValueError(f"there is no phase {phase!r}; use one of {', '.join(PHASES)}")
    return phase
