"""When a training saves, and from where it goes on."""

from dataclasses import dataclass
from pathlib import Path

from kopeck_trainer.checkpoint.loading import load_newest, open_folder
from kopeck_trainer.checkpoint.manifest import Position
from kopeck_trainer.checkpoint.saving import Saver
from kopeck_trainer.checkpoint.state import TrainedState
from kopeck_trainer.config import CheckpointConfig
from kopeck_trainer.environment import RankEnvironment
from kopeck_trainer.progress import Progress
from kopeck_trainer.reporter import Reporter


@dataclass
class Checkpoints:
    """The checkpoints of this training; `config` is None where it has none."""

    config: CheckpointConfig | None
    environment: RankEnvironment
    state: TrainedState
    reporter: Reporter
    progress: Progress
    saved_step: int | None = None

    def resume(self) -> Position:
        """Load the newest good checkpoint. Returns where training stands, the start without one."""
        position = None
        if self.config:
            folder = self._folder(self.config)
            with self.reporter.clock.during("checkpoint"):
                open_folder(folder, self.environment.attempt)
                position = load_newest(folder, self.state)
        if position is None:
            return Position(step=0, samples=0)
        self._is_saved(position)
        self.progress.say(f"resumed after step {position.step}, {position.samples} samples")
        return position

    def save_if_due(self, position: Position) -> None:
        if self.config and self.config.every_steps and not position.step % self.config.every_steps:
            self.save(position)

    def save(self, position: Position) -> bool:
        """True once `position` is safe on disk; False where the training has no checkpoints."""
        if self.config is None:
            return False
        if position.step != self.saved_step:
            with self.reporter.clock.during("checkpoint"):
                self._saver(self.config).save(self.state, position)
            self._is_saved(position)
            self.progress.say(f"saved a checkpoint after step {position.step}")
        return True

    def _is_saved(self, position: Position) -> None:
        self.saved_step = position.step
        self.reporter.update(
            step=position.step, job_samples=position.samples, checkpoint_step=position.step
        )
        self.reporter.send()

    def _saver(self, config: CheckpointConfig) -> Saver:
        folder = self._folder(config)
        return Saver(folder=folder, attempt=self.environment.attempt, keep=config.keep)

    def _folder(self, config: CheckpointConfig) -> Path:
        """A job's own: one of the same name, created later, is another job."""
        return config.path / self.environment.job_uid
