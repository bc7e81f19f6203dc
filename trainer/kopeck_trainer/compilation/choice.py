"""The compile mode that `auto` keeps, and the numbers that speak for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kopeck_trainer.compilation.policy import Trial, break_even_steps, total_seconds
from kopeck_trainer.config import CompileMode


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What was chosen among `trials`, for the steps that remained."""

    chosen: Trial
    trials: Sequence[Trial]
    remaining_steps: int

    @property
    def mode(self) -> CompileMode:
        return self.chosen.mode

    @property
    def repaid_after_steps(self) -> float | None:
        """None for the first mode tried, to which the others are compared."""
        first = self.trials[0]
        return None if self.chosen == first else break_even_steps(self.chosen, first)

    def __str__(self) -> str:
        totals = ", ".join(
            f"{trial.mode} {total_seconds(trial, self.remaining_steps):.4g} s"
            for trial in self._measured
        )
        steps = self.repaid_after_steps
        repaid = f"; repaid after {steps:.0f} steps" if steps else ""
        return f"compile mode {self.mode} for {self.remaining_steps} steps: {totals}{repaid}"

    def report(self) -> dict[str, Any]:
        """As reports carry it: without the modes that could not be used."""
        trials = [
            {
                "mode": trial.mode,
                "compile_seconds": trial.compile_seconds,
                "step_seconds": trial.step_seconds,
            }
            for trial in self._measured
        ]
        report = {"mode": self.mode, "why": str(self), "trials": trials}
        steps = self.repaid_after_steps
        return report if steps is None else report | {"break_even_steps": steps}

    @property
    def _measured(self) -> list[Trial]:
        return [trial for trial in self.trials if trial.step_seconds is not None]
