"""When a rank's windows begin and end, step by step, on all ranks alike."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

from kopeck_trainer.progress import Progress
from kopeck_trainer.reporter import Reporter
from kopeck_trainer.windows.analysis import Analysis
from kopeck_trainer.windows.faults import WindowFaults
from kopeck_trainer.windows.recorder import Recorder
from kopeck_trainer.windows.wish import WindowWish

WARM_UP_STEPS = 1


@dataclass(kw_only=True)
class WindowUnderWay:
    """It begins with a step to warm up."""

    recorder: Recorder
    compilations: int
    """Before it."""
    steps: int = 0
    """That have been handed over since."""


@dataclass(kw_only=True)
class WindowCost:
    """What steps took longer than those before, from the profiler's start to the step after it."""

    median_seconds: float
    last_step: int
    seconds: float = 0.0


@dataclass(kw_only=True)
class Windows:
    """Told of every step. Whatever goes wrong is counted, and the window is lost."""

    steps: int
    """That are measured."""
    wish: WindowWish
    recorder_of: Callable[[], Recorder]
    analysis: Analysis
    faults: WindowFaults
    folder: Path
    local_rank: int
    compilations: Callable[[], int]
    """Graphs that this rank has compiled."""
    reporter: Reporter
    progress: Progress
    under_way: WindowUnderWay | None = field(default=None, init=False)
    cost: WindowCost | None = field(default=None, init=False)

    def between_steps(self, step: int, *, is_asked: bool, free_steps: int) -> None:
        """`step` has been handed over to the device, and the next one is to follow.

        `is_asked` if any rank wishes for a window; nothing but training happens in the next
        `free_steps`. Both are the same on all ranks.
        """
        if self.under_way is not None:
            self._advance(self.under_way, step)
        elif is_asked and free_steps >= WARM_UP_STEPS + self.steps:
            self._begin(step)

    def abandon(self) -> None:
        """Something else happens now: the window under way is lost."""
        window, self.under_way = self.under_way, None
        if window:
            self._tried(window.recorder.abandon)
            self._profiler_is_off()

    def step_ended(self, step: int, seconds: float) -> None:
        """A step has ended, `seconds` after the one before."""
        if self.cost is None:
            return
        self.cost.seconds += seconds - self.cost.median_seconds
        if step >= self.cost.last_step:
            period = self.wish.cost(max(0.0, self.cost.seconds))
            if period:
                self.progress.say(
                    f"a trace window cost {self.cost.seconds:.2f} s: the next one begins after"
                    f" {period:.0f} s"
                )
            self.cost = None

    def _begin(self, step: int) -> None:
        self.wish.begun()
        self.reporter.update(profiler_on_at_seconds=inf)
        median_seconds = self.reporter.steady_step_seconds
        if median_seconds is not None:
            last_step = step + WARM_UP_STEPS + self.steps + 1
            self.cost = WindowCost(median_seconds=median_seconds, last_step=last_step)
        try:
            recorder = self.recorder_of()
            recorder.warm_up()
        except Exception as error:  # noqa: BLE001  torch's profiler may raise anything
            self._failed(error)
            self._profiler_is_off()
            return
        self.under_way = WindowUnderWay(recorder=recorder, compilations=self.compilations())

    def _advance(self, window: WindowUnderWay, step: int) -> None:
        window.steps += 1
        if window.steps == WARM_UP_STEPS + self.steps:
            self.under_way = None
            self._end(window, step)
            return
        is_first = window.steps == WARM_UP_STEPS
        if not self._tried(window.recorder.begin if is_first else window.recorder.mark):
            self.abandon()

    def _end(self, window: WindowUnderWay, step: int) -> None:
        trace = self.folder / f"rank-{self.local_rank}.window-{step}.json"
        is_written = self._tried(lambda: window.recorder.end(trace))
        self._profiler_is_off()
        if not is_written:
            trace.unlink(missing_ok=True)
        elif self.compilations() != window.compilations:
            trace.unlink(missing_ok=True)  # of no steady step: no fault, the next one will be
        else:
            self._tried(lambda: self.analysis.begin(trace, step, time.time()))

    def _profiler_is_off(self) -> None:
        self.reporter.update(profiler_on_at_seconds=time.monotonic())

    def _tried(self, action: Callable[[], None]) -> bool:
        """Whether it went well."""
        try:
            action()
        except Exception as error:  # noqa: BLE001  torch's profiler may raise anything
            self._failed(error)
            return False
        return True

    def _failed(self, error: Exception) -> None:
        self.faults.count("profiler", f"{type(error).__name__}: {error}".partition("\n")[0])
