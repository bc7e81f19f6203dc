"""For Lightning: `Trainer(..., callbacks=[ReportCallback()])`, and kopeck sees it.

Needs `lightning`, which kopeck does not bring.
"""

from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.utilities.data import extract_batch_size

from kopeck_trainer.loop_reports import loop_reports


class ReportCallback(Callback):  # type: ignore[misc]  # users bring it
    """Reports steps, samples, the loss as often as the Trainer logs, and phases.

    A step ends with an update of the weights, after as many batches as are accumulated. Evaluation
    counts as compute, and what is between two batches as waiting for data, or as a checkpoint
    where one was saved: Lightning does not say when that is over.
    """

    def __init__(self) -> None:
        self._reports = loop_reports()
        self._samples = 0
        self._steps = 0
        self._last_loss: float | None = None

    def on_train_start(self, trainer: Trainer, _module: LightningModule) -> None:
        self._steps = trainer.global_step
        self._reports.resumed(self._steps)

    def on_train_batch_start(self, *_: Any) -> None:
        if self._reports.has_stepped:
            self._switch("compute")

    def on_train_batch_end(
        self, trainer: Trainer, _module: LightningModule, outputs: Any, batch: Any, _index: int
    ) -> None:
        self._samples += extract_batch_size(batch)
        if trainer.global_step > self._steps:
            self._steps = trainer.global_step
            self._reports.step(samples=self._samples, loss=self._loss(trainer, outputs))
            self._samples = 0
        if self._reports.has_stepped:
            self._switch("data_wait")

    def on_save_checkpoint(
        self, trainer: Trainer, _module: LightningModule, _checkpoint: dict[str, Any]
    ) -> None:
        self._reports.reporter.update(checkpoint_step=trainer.global_step)
        self._switch("checkpoint")

    def on_validation_start(self, *_: Any) -> None:
        if self._reports.has_stepped:
            self._switch("compute")

    def on_validation_end(self, *_: Any) -> None:
        if self._reports.has_stepped:
            self._switch("data_wait")

    def on_train_end(self, *_: Any) -> None:
        self._switch("idle")
        self._reports.reporter.send()

    def _loss(self, trainer: Trainer, outputs: Any) -> float | None:
        """Of this step where it is time to log, else the one before: each is a wait for the GPU."""
        if trainer.global_step % trainer.log_every_n_steps == 0:
            self._last_loss = float(outputs["loss"])
        return self._last_loss

    def _switch(self, phase: str) -> None:
        self._reports.reporter.clock.switch(phase)
