"""The policy `auto`: modes are tried on real steps, and the cheapest is kept."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from kopeck_trainer.agreement import gathered, on_rank_zero
from kopeck_trainer.compilation.choice import Choice
from kopeck_trainer.compilation.measuring import Measurement, StepFacts
from kopeck_trainer.compilation.numerics import eager_fits
from kopeck_trainer.compilation.policy import Trial, cheapest, next_mode
from kopeck_trainer.compilation.record import Decision, Key, recalled, remember
from kopeck_trainer.config import CompileMode
from kopeck_trainer.errors import ConfigurationError

EXCEPTIONS_OF_A_MODE = (torch._dynamo.exc.TorchDynamoException, torch.OutOfMemoryError)  # noqa: SLF001
"""What the first mode may be blamed for; the user's own code may raise everything else."""


@dataclass(kw_only=True)
class ModeSearch:
    """One mode after the other. All ranks go through the same trials at the same steps.

    Trials, once measured, are remembered in `folder`, and so is a mode that ends its process.
    Without a folder only modes that any training might use are tried.
    """

    folder: Path | None
    key: Key
    device: torch.device
    say: Callable[[str], None]
    trials: tuple[Trial, ...] = ()
    measurement: Measurement | None = None
    _compile_seconds_before: float = field(default=0.0, init=False)

    def recall(self) -> None:
        """Know the trials of earlier attempts. A longer run may find more modes worth trying."""
        self.trials = on_rank_zero(lambda: recalled(self.folder, self.key) if self.folder else ())

    @property
    def mismatch(self) -> str | None:
        """How a mode that was tried differs from eager."""
        return next((trial.infeasible for trial in self.trials if trial.differs), None)

    def begin_trial(self, remaining_steps: int, compile_seconds: float) -> CompileMode | None:
        """The mode to try now, None if none is worth it. `compile_seconds` are all until now."""
        candidates = self._candidates()
        mode = on_rank_zero(lambda: next_mode(candidates, self.trials, remaining_steps))
        self._compile_seconds_before = compile_seconds
        self.measurement = Measurement(mode, remaining_steps) if mode else None
        return mode

    def add_step(self, facts: StepFacts, compile_seconds: float) -> bool:
        """Add a step of the mode on trial. True if that was the trial's last."""
        measurement = self._running()
        measurement.add(gathered(facts))
        if measurement.is_over:
            slowest_seconds = max(gathered(compile_seconds - self._compile_seconds_before))
            self._conclude(measurement.result(slowest_seconds))
        return measurement.is_over

    def refuse(self, mismatch: str) -> None:
        """End the trial: the mode computes something else than eager."""
        mode = self._running().mode
        self._conclude(Trial(mode=mode, compile_seconds=0.0, infeasible=mismatch, differs=True))

    def decide(self, remaining_steps: int) -> Choice:
        """The mode to keep. Raises ConfigurationError where none works."""
        return on_rank_zero(lambda: self._decide(remaining_steps))

    def has_compiled_losers(self, chosen: CompileMode) -> bool:
        """Whether graphs, and the memory of recorded ones, are kept for nothing."""
        return bool({trial.mode for trial in self.trials} - {"off", chosen})

    def is_blamed_for(self, error: Exception) -> bool:
        """True where the mode on trial is the likely cause, and is remembered as infeasible."""
        if self.measurement is None:
            return False
        if isinstance(error, torch._dynamo.exc.Unsupported):  # noqa: SLF001
            return False  # a graph break, and the user wants to know
        another_works = any(trial.step_seconds is not None for trial in self.trials)
        if not another_works and not isinstance(error, EXCEPTIONS_OF_A_MODE):
            return False
        reason = f"{type(error).__name__}: {error}".partition("\n")[0]
        trial = Trial(mode=self.measurement.mode, compile_seconds=0.0, infeasible=reason)
        return self._remember(Decision(trials=(*self.trials, trial)))

    def _candidates(self) -> Sequence[CompileMode]:
        candidates: list[CompileMode] = ["default"]
        if eager_fits(self.device):
            candidates.append("off")
        if self.folder:
            if self.device.type == "cuda":
                candidates.append("reduce-overhead")
            candidates.append("max-autotune-no-cudagraphs")
        return candidates

    def _running(self) -> Measurement:
        assert self.measurement is not None  # noqa: S101  begin_trial came before
        return self.measurement

    def _conclude(self, trial: Trial) -> None:
        self.trials = (*self.trials, trial)
        self.measurement = None
        self.say(sentence(trial))
        on_rank_zero(lambda: self._remember(Decision(trials=self.trials)))

    def _decide(self, remaining_steps: int) -> Choice:
        chosen = cheapest(self.trials, remaining_steps)
        if chosen is None:
            reasons = "; ".join(sentence(trial) for trial in self.trials)
            raise ConfigurationError(
                "spec.training.compile.mode",
                f"no mode works ({reasons})",
                "lower spec.training.microBatchSize, or set the mode to off",
            )
        self._remember(Decision(trials=self.trials, mode=chosen.mode))
        return Choice(chosen=chosen, trials=self.trials, remaining_steps=remaining_steps)

    def _remember(self, decision: Decision) -> bool:
        """False where there is no place for it; training goes on without."""
        if self.folder is None:
            return False
        try:
            remember(self.folder, self.key, decision)
        except OSError as error:
            self.say(f"spec.training.compile.cache: {self.folder} cannot be written ({error})")
            return False
        return True


def sentence(trial: Trial) -> str:
    """What one trial has shown."""
    if trial.step_seconds is None:
        return f"compile mode {trial.mode} cannot be used: {trial.infeasible}"
    return (
        f"compile mode {trial.mode}: {trial.compile_seconds:.1f} s to compile, "
        f"{trial.step_seconds * 1000:.4g} ms a step"
    )
