"""The training loop of a rank."""

import math
from collections import deque
from dataclasses import dataclass, field, replace
from time import monotonic

from kopeck_trainer.batches import Batches
from kopeck_trainer.checkpoint.manifest import Position
from kopeck_trainer.checkpointing import Checkpoints
from kopeck_trainer.compilation.session import Compilation
from kopeck_trainer.config import TrainingConfig
from kopeck_trainer.errors import NonfiniteLossError
from kopeck_trainer.garbage import Garbage
from kopeck_trainer.hang_watch import HangWatch
from kopeck_trainer.loss_watch import LossWatch
from kopeck_trainer.optimizer_step import OptimizerStep
from kopeck_trainer.progress import Progress, StepLine
from kopeck_trainer.reporter import Reporter
from kopeck_trainer.step_split import StepSplit
from kopeck_trainer.step_totals import PendingTotals, Totals
from kopeck_trainer.windows.recording import Windows
from kopeck_trainer.wishes import Wishes


@dataclass(frozen=True, kw_only=True)
class StepUnderWay:
    """A step that the host has handed to the device."""

    totals: PendingTotals
    position: Position
    """After it."""
    phase: str
    tokens: int | None
    """Of this process, in all steps until its end."""


@dataclass(kw_only=True)
class Loop:
    """Steps until all samples are consumed, or until any rank was asked to stop."""

    training: TrainingConfig
    last_sample: int
    """Samples of the whole training."""
    position: Position
    step: OptimizerStep
    lead: int
    """Steps that the host may be ahead of the device, the same on all ranks; 0 while compile modes
    are on trial, for which steps are timed one by one."""
    split: StepSplit
    batches: Batches
    checkpoints: Checkpoints
    compilation: Compilation
    hang_watch: HangWatch
    wishes: Wishes
    windows: Windows
    reporter: Reporter
    progress: Progress
    losses: LossWatch = field(default_factory=LossWatch)
    garbage: Garbage = field(default_factory=Garbage)
    under_way: deque[StepUnderWay] = field(default_factory=deque)
    ended_at_seconds: float = 0.0
    """When the last step was known to have ended, by the monotonic clock."""
    saved_step: int = field(default=0, init=False)
    """After which the last checkpoint began."""

    def run(self) -> bool:
        """True once training is complete, False if it stopped at the end of a step.

        Wishes are seen `lead` steps after the one that carried them, on all ranks alike; so is a
        loss that is not finite, for which NonfiniteLossError is raised where that is asked for.
        """
        self.reporter.clock.switch("warmup")
        if self.position.samples < self.last_sample:
            self.compilation.begin(self._remaining_steps(self.position))
        self._steps_begin()
        is_stopped = False
        while self.position.samples < self.last_sample and not is_stopped:
            self.under_way.append(self._step())
            is_stopped = self._end_steps()
        self.windows.abandon()
        self._await_all_but(0)
        self.split.finish()
        self.reporter.update(step_part_seconds=self.split.seconds)
        self.reporter.clock.switch("idle")
        return self.position.samples >= self.last_sample

    def _step(self) -> StepUnderWay:
        phase = self.reporter.clock.phase
        batches = self.batches.of_step(self.position.samples)
        with self.compilation.step(self._remaining_steps(self.position) - 1):
            totals = self.step.run(batches, self.batches.per_step, self.wishes)
        self._advance()
        if self.compilation.is_settled:  # graphs of modes on trial are garbage later
            self.garbage.step_ended()
        if self.compilation.watch.is_warm:
            self.reporter.clock.switch("compute")
            self.wishes.window.steady()
        return StepUnderWay(
            totals=totals, position=self.position, phase=phase, tokens=self.batches.tokens
        )

    def _end_steps(self) -> bool:
        """Await what has to end before the next step. True if any rank was asked to stop."""
        ended = self._await_all_but(self.lead if self.compilation.is_settled else 0)
        is_stopped = any(totals.stop for totals in ended)
        is_wished = any(totals.save for totals in ended)
        if not is_stopped and self.checkpoints.is_due(self.position, is_wished=is_wished):
            self.windows.abandon()
            ended += self._await_all_but(0)
            self.checkpoints.begin(self.position)
            self.saved_step = self.position.step
            self._steps_begin()
        if ended:
            self.hang_watch.progressed()
        is_stopped = any(totals.stop for totals in ended)
        if not is_stopped:
            is_asked = any(totals.window for totals in ended)
            self.windows.between_steps(
                self.position.step, is_asked=is_asked, free_steps=self._free_steps()
            )
        return is_stopped

    def _free_steps(self) -> int:
        """In which nothing but training happens, as far as all ranks know.

        None where a checkpoint has just begun: the wish is older, and it may be written for long.
        """
        if self.position.step == self.saved_step:
            return 0
        remaining = self._remaining_steps(self.position)
        until_due = self.checkpoints.steps_until_due(self.position)
        return remaining if until_due is None else min(remaining, until_due)

    def _steps_begin(self) -> None:
        """What came before is no part of the next step's time."""
        self.ended_at_seconds = monotonic()
        self.split.begin()

    def _await_all_but(self, count: int) -> list[Totals]:
        """The totals of the steps that have ended now."""
        ended = []
        while len(self.under_way) > count:
            step = self.under_way.popleft()
            totals = step.totals.read()
            self._tell(step, totals)
            self._refuse_nonfinite(step, totals)
            ended.append(totals)
        return ended

    def _refuse_nonfinite(self, step: StepUnderWay, totals: Totals) -> None:
        if self.training.fails_on_nonfinite_loss and not math.isfinite(totals.loss):
            raise NonfiniteLossError(
                f"the loss of step {step.position.step} is {totals.loss}, and"
                " spec.training.onNonfiniteLoss is fail"
            )

    def _remaining_steps(self, position: Position) -> int:
        return -((position.samples - self.last_sample) // self.training.global_batch_size)

    def _advance(self) -> None:
        self.position = replace(
            self.position,
            step=self.position.step + 1,
            samples=self.position.samples + self.training.global_batch_size,
        )

    def _tell(self, step: StepUnderWay, totals: Totals) -> None:
        now = monotonic()
        wrong = self.losses.seen(totals.loss, is_skipped=totals.is_skipped)
        self.reporter.update(
            tokens=step.tokens,
            nonfinite_losses=self.losses.nonfinite,
            loss_spikes=self.losses.spikes,
            step_part_seconds=self.split.seconds,
            **self.compilation.watch.figures,
        )
        self.reporter.step_ended(
            samples=self.batches.micro_batch * self.batches.per_step,
            step=step.position.step,
            job_samples=step.position.samples,
            seconds=now - self.ended_at_seconds,
            loss=totals.loss,
            is_steady=step.phase == "compute",
        )
        self.windows.step_ended(step.position.step, now - self.ended_at_seconds)
        self.ended_at_seconds = now
        self.progress.step(self._line(step, totals))
        if wrong:
            self.progress.say(f"step {step.position.step}: {wrong}")

    def _line(self, step: StepUnderWay, totals: Totals) -> StepLine:
        own_rate = self.reporter.samples_per_second
        return StepLine(
            step=step.position.step,
            last_step=step.position.step + self._remaining_steps(step.position),
            loss=totals.loss,
            samples_per_second=None if own_rate is None else own_rate * self.batches.ranks,
            phase=step.phase,
        )
