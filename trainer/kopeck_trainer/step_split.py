"""What the time of the steps goes into.

A device that is behind its host hides what the host waits for: of such a wait only the device's own
gap counts. That is known once the device has come there, so marks are read two steps late, and
nothing waits for them. Waiting for other ranks is part of forward and backward: no mark tells it
apart.
"""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from kopeck_exporter.names import STEP_PARTS
from kopeck_trainer.phases import UNDECIDED, PhaseClock
from kopeck_trainer.timeline import Mark, Timeline

STEPS_LATE = 2


@dataclass(frozen=True, kw_only=True)
class Wait:
    """Of the host, in the middle of a step."""

    phase: str
    around: str
    """The phase that it interrupted."""
    host_seconds: float
    """Undecided until the gap is known; 0 where the host's own clock has decided."""
    begins: Mark
    ends: Mark

    @property
    def gap_seconds(self) -> float:
        """Between two pieces of the device's work."""
        return self.ends.seconds_since(self.begins)


@dataclass(frozen=True, kw_only=True)
class MarkedStep:
    """One step that the host has handed over."""

    begins: Mark
    reads: list[Wait]
    """Before its batches."""
    computed: Mark
    """After its last backward."""
    waits: list[Wait]
    """Before its update."""
    ends: Mark
    is_counted: bool


class StepSplit:
    """`seconds` by part of all steps in phase compute, which the device has ended."""

    def __init__(self, clock: PhaseClock, timeline: Timeline) -> None:
        self.seconds = dict.fromkeys(STEP_PARTS, 0.0)
        self._clock = clock
        self._timeline = timeline
        self._begins = self._computed = timeline.mark()
        self._reads: list[Wait] = []
        self._waits: list[Wait] = []
        self._under_way: deque[MarkedStep] = deque()

    def begin(self) -> None:
        """The next step begins now: the time since the last one is no part of a step."""
        self._begins = self._timeline.mark()

    @contextmanager
    def waiting(self, phase: str) -> Iterator[None]:
        """The host waits inside, for `phase`."""
        around, before = self._clock.phase, self._clock.undecided_seconds
        begins = self._timeline.mark()
        with self._clock.during(UNDECIDED if self._timeline.lags else phase):
            yield
        wait = Wait(
            phase=phase,
            around=around,
            host_seconds=self._clock.undecided_seconds - before,
            begins=begins,
            ends=self._timeline.mark(),
        )
        self._waits.append(wait)

    def computed(self) -> None:
        """Forward and backward of all micro-batches are handed over."""
        self._computed = self._timeline.mark()
        self._reads, self._waits = self._waits, []

    def ended(self) -> None:
        """The update is handed over."""
        step = MarkedStep(
            begins=self._begins,
            reads=self._reads,
            computed=self._computed,
            waits=self._waits,
            ends=self._timeline.mark(),
            is_counted=self._clock.phase == "compute",
        )
        self._begins = step.ends
        self._reads, self._waits = [], []
        self._under_way.append(step)
        self._settle_all_but(STEPS_LATE if self._timeline.lags else 0)

    def finish(self) -> None:
        """The device has ended all steps."""
        self._settle_all_but(0)

    def _settle_all_but(self, count: int) -> None:
        while len(self._under_way) > count and self._under_way[0].ends.is_past:
            self._settle(self._under_way.popleft())

    def _settle(self, step: MarkedStep) -> None:
        waited = [(wait.phase, self._decided(wait)) for wait in (*step.reads, *step.waits)]
        if not step.is_counted:
            return
        compute_begins = step.reads[0].begins if step.reads else step.begins
        parts = [
            ("forward_backward", _work_seconds(compute_begins, step.computed, step.reads)),
            ("optimizer", _work_seconds(step.computed, step.ends, step.waits)),
            *waited,
        ]
        for part, seconds in parts:
            self.seconds[part] += seconds
        known = sum(seconds for _, seconds in parts)
        self.seconds["other"] += max(0.0, step.ends.seconds_since(step.begins) - known)

    def _decided(self, wait: Wait) -> float:
        """The seconds of a wait that the device had nothing to do in."""
        if not self._timeline.lags:
            return wait.gap_seconds
        seconds = min(wait.host_seconds, wait.gap_seconds)
        self._clock.decide(wait.phase, seconds)
        self._clock.decide(wait.around, wait.host_seconds - seconds)
        return seconds


def _work_seconds(begins: Mark, ends: Mark, waits: list[Wait]) -> float:
    """Without the gaps in between; a device's clock is rounded."""
    return max(0.0, ends.seconds_since(begins) - sum(wait.gap_seconds for wait in waits))
