"""When a training saves, and from where it goes on."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from torch import distributed as dist

from kopeck_trainer.agreement import gathered
from kopeck_trainer.checkpoint.background import BackgroundSaver
from kopeck_trainer.checkpoint.loading import load_newest, open_folder
from kopeck_trainer.checkpoint.manifest import Position
from kopeck_trainer.checkpoint.saving import Saver
from kopeck_trainer.checkpoint.state import TrainedState
from kopeck_trainer.config import CheckpointConfig
from kopeck_trainer.environment import RankEnvironment
from kopeck_trainer.errors import NonfiniteLossError
from kopeck_trainer.progress import Progress
from kopeck_trainer.reporter import Reporter
from kopeck_trainer.save_wish import SaveWish


@dataclass
class Checkpoints:
    """The checkpoints of this training; `config` is None where it has none."""

    config: CheckpointConfig | None
    fails_on_nonfinite: bool
    """Weights that are not finite end the attempt, and are not saved."""
    environment: RankEnvironment
    state: TrainedState
    reporter: Reporter
    progress: Progress
    wish: SaveWish = field(init=False)
    begun_step: int | None = None
    """The last one that is saved, or being saved."""
    background: BackgroundSaver | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        """To be made by all ranks together."""
        self.wish = self._wish()
        if self.config and self.config.in_background:
            # Of its own: what its thread sends must not mix with what the training sends.
            group = cast("dist.ProcessGroup", dist.new_group(backend="gloo"))
            self.background = BackgroundSaver(self._saver(self.config, group))

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
        self.begun_step = position.step
        self.reporter.update(step=position.step, job_samples=position.samples)
        self._is_saved(position, None)
        self.progress.say(f"resumed after step {position.step}, {position.samples} samples")
        return position

    def is_due(self, position: Position, *, is_wished: bool) -> bool:
        """Whether to save now. Raises what saving in the background has raised since."""
        if self.config is None:
            return False
        if self.background:
            self.background.raise_if_failed()
        every = self.config.every_steps
        return is_wished or (every is not None and position.step % every == 0)

    def steps_until_due(self, position: Position) -> int | None:
        """Steps that may follow before one is due by their number; None for as many as you like."""
        every = self.config.every_steps if self.config else None
        return None if every is None else every - position.step % every

    @property
    def is_being_written(self) -> bool:
        """In the background."""
        return self.background is not None and self.background.is_writing

    def begin(self, position: Position) -> None:
        """Save, or begin to in the background. No step may be under way.

        Raises NonfiniteLossError.
        """
        if self.config:
            self._save(self.config, position)

    def save(self, position: Position) -> bool:
        """True once `position` is safe on disk; False where the training has no checkpoints.

        Raises NonfiniteLossError.
        """
        if self.config is None:
            return False
        if position.step != self.begun_step:
            self._save(self.config, position)
        self.finish()
        return True

    def finish(self) -> None:
        """Wait for the one that is being written."""
        if self.background:
            with self.reporter.clock.during("checkpoint"):
                self.background.finish()

    def before_update(self) -> None:
        """The weights may change once a copy of them is taken."""
        if self.background:
            self.background.await_copy()

    def _save(self, config: CheckpointConfig, position: Position) -> None:
        if self.fails_on_nonfinite:
            self._refuse_nonfinite(position)
        request = self.wish.answered()
        self.begun_step = position.step
        with self.reporter.clock.during("checkpoint"):
            if self.background:
                self.background.start(
                    self.state.snapshot(),
                    position,
                    on_saved=lambda: self._is_committed(position, request),
                )
            else:
                self._saver(config, None).save(self.state.read(), position)
                self._is_committed(position, request)

    def _refuse_nonfinite(self, position: Position) -> None:
        """A gradient may be infinite where its loss is not: no later attempt could go on."""
        if not all(gathered(self.state.is_finite())):
            raise NonfiniteLossError(
                f"the weights after step {position.step} are not finite, and"
                " spec.training.onNonfiniteLoss is fail"
            )

    def _is_committed(self, position: Position, request: str | None) -> None:
        self._is_saved(position, request)
        self.progress.say(f"saved a checkpoint after step {position.step}")

    def _is_saved(self, position: Position, request: str | None) -> None:
        self.reporter.update(checkpoint_step=position.step)
        if request:
            self.reporter.update(checkpoint_request=request)
        self.reporter.send_soon()

    def _wish(self) -> SaveWish:
        """Rank 0 wishes for all."""
        if self.environment.rank:
            return SaveWish(every_seconds=None, annotations=None)
        every_seconds = self.config.every_seconds if self.config else None
        return SaveWish(every_seconds, self.environment.annotations)

    def _saver(self, config: CheckpointConfig, group: dist.ProcessGroup | None) -> Saver:
        return Saver(
            folder=self._folder(config),
            attempt=self.environment.attempt,
            keep=config.keep,
            group=group,
        )

    def _folder(self, config: CheckpointConfig) -> Path:
        """A job's own: one of the same name, created later, is another job."""
        return config.path / self.environment.job_uid
