"""The training loop of a rank."""

from dataclasses import dataclass, field, replace
from time import monotonic

from kopeck_trainer.batches import Batches
from kopeck_trainer.checkpoint.manifest import Position
from kopeck_trainer.checkpointing import Checkpoints
from kopeck_trainer.compilation.session import Compilation
from kopeck_trainer.config import TrainingConfig
from kopeck_trainer.hang_watch import HangWatch
from kopeck_trainer.loss_watch import LossWatch
from kopeck_trainer.optimizer_step import OptimizerStep, Totals
from kopeck_trainer.progress import Progress, StepLine
from kopeck_trainer.reporter import Reporter
from kopeck_trainer.wishes import Wishes


@dataclass(kw_only=True)
class Loop:
    """Steps until all samples are consumed, or until any rank was asked to stop."""

    training: TrainingConfig
    last_sample: int
    """Samples of the whole training."""
    position: Position
    step: OptimizerStep
    batches: Batches
    checkpoints: Checkpoints
    compilation: Compilation
    hang_watch: HangWatch
    wishes: Wishes
    reporter: Reporter
    progress: Progress
    losses: LossWatch = field(default_factory=LossWatch)

    def run(self) -> bool:
        """True once training is complete, False if it stopped at the end of a step."""
        self.reporter.clock.switch("warmup")
        if self.position.samples < self.last_sample:
            self.compilation.begin(self._remaining_steps())
        while self.position.samples < self.last_sample:
            totals = self._step()
            if totals.stop:
                break
            self.checkpoints.save_if_due(self.position, is_wished=totals.save)
            self.hang_watch.progressed()
        self.reporter.clock.switch("idle")
        return self.position.samples >= self.last_sample

    def _step(self) -> Totals:
        started_at = monotonic()
        phase = self.reporter.clock.phase
        batches = self.batches.of_step(self.position.samples)
        with self.compilation.step(self._remaining_steps() - 1):
            totals = self.step.run(batches, self.batches.per_step, self.wishes)
        self._advance()
        self._tell(totals, phase, monotonic() - started_at)
        if self.compilation.watch.is_warm:
            self.reporter.clock.switch("compute")
        return totals

    def _remaining_steps(self) -> int:
        return -((self.position.samples - self.last_sample) // self.training.global_batch_size)

    def _advance(self) -> None:
        self.position = replace(
            self.position,
            step=self.position.step + 1,
            samples=self.position.samples + self.training.global_batch_size,
        )

    def _tell(self, totals: Totals, phase: str, seconds: float) -> None:
        watch = self.compilation.watch
        self.reporter.update(graph_breaks=watch.graph_breaks, recompiles=watch.recompiles)
        self.reporter.step_ended(
            samples=self.batches.micro_batch * self.batches.per_step,
            step=self.position.step,
            job_samples=self.position.samples,
            seconds=seconds,
            loss=totals.loss,
        )
        self.progress.step(self._line(totals, phase))
        if wrong := self.losses.seen(totals.loss):
            self.progress.say(f"step {self.position.step}: {wrong}")
            self.reporter.update(
                nonfinite_losses=self.losses.nonfinite, loss_spikes=self.losses.spikes
            )

    def _line(self, totals: Totals, phase: str) -> StepLine:
        own_rate = self.reporter.samples_per_second
        return StepLine(
            step=self.position.step,
            last_step=self.position.step + self._remaining_steps(),
            loss=totals.loss,
            samples_per_second=None if own_rate is None else own_rate * self.batches.ranks,
            phase=phase,
        )
