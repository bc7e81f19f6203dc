"""Measuring one compile mode over real steps."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from kopeck_trainer.compilation.policy import DROPPED_STEPS, MEASURED_STEPS, TRIAL_STEPS, Trial
from kopeck_trainer.config import CompileMode

LONGEST_RATIO = 0.01
"""Of the remaining steps: a mode that still compiles or records after these is given up."""


@dataclass(frozen=True, kw_only=True)
class StepFacts:
    """One step of one rank."""

    seconds: float
    has_compiled: bool
    """Or autotuned, or recorded a CUDA graph."""


@dataclass
class Measurement:
    """The steps in one mode so far."""

    mode: CompileMode
    remaining_steps: int
    """When it began."""
    steps: int = 0
    dropped: int = 0
    """Since the last compilation."""
    measured_seconds: list[float] = field(default_factory=list)

    def add(self, ranks: Sequence[StepFacts]) -> None:
        """One step by the facts of all ranks: the slowest counts, and any that compiled."""
        self.steps += 1
        if any(rank.has_compiled for rank in ranks):
            self.dropped = 0
            self.measured_seconds.clear()
        elif self.dropped < DROPPED_STEPS:
            self.dropped += 1
        else:
            self.measured_seconds.append(max(rank.seconds for rank in ranks))

    @property
    def is_over(self) -> bool:
        longest = max(2 * TRIAL_STEPS, int(LONGEST_RATIO * self.remaining_steps))
        return len(self.measured_seconds) == MEASURED_STEPS or self.steps >= longest

    def result(self, compile_seconds: float) -> Trial:
        """`compile_seconds` are those of the slowest rank."""
        if len(self.measured_seconds) == MEASURED_STEPS:
            seconds = median(self.measured_seconds)
            return Trial(mode=self.mode, compile_seconds=compile_seconds, step_seconds=seconds)
        return Trial(
            mode=self.mode,
            compile_seconds=compile_seconds,
            infeasible=f"it still compiled or recorded after {self.steps} steps",
        )
