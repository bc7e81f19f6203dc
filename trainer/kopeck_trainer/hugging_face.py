"""For Hugging Face's Trainer: `Trainer(..., callbacks=[ReportCallback()])`, and kopeck sees it.

Needs `transformers`, which kopeck does not bring.
"""

from typing import Any

from torch import Tensor, nn
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from kopeck_trainer.loop_reports import loop_reports


class ReportCallback(TrainerCallback):  # type: ignore[misc]  # users bring it
    """Reports steps, samples, the logged loss, checkpoints, and what the time is spent on.

    Samples are rows of the batches that the model is called with while it trains. Evaluation
    counts as compute; what is between two steps and neither that nor saving is waiting for data.
    """

    def __init__(self) -> None:
        self._reports = loop_reports()
        self._samples = 0
        self._loss: float | None = None

    def on_train_begin(
        self, _args: TrainingArguments, state: TrainerState, _control: TrainerControl, **others: Any
    ) -> None:
        self._reports.resumed(state.global_step)
        others["model"].register_forward_pre_hook(self._count, with_kwargs=True)

    def on_step_begin(self, *_: Any, **_others: Any) -> None:
        if self._reports.has_stepped:
            self._switch("compute")

    def on_step_end(
        self, _args: TrainingArguments, _state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        self._reports.step(samples=self._samples, loss=self._loss)
        self._samples = 0
        if not control.should_evaluate:
            self._after_evaluation(control)

    def on_evaluate(
        self, _args: TrainingArguments, _state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        self._after_evaluation(control)

    def on_log(self, *_: Any, logs: dict[str, Any], **_others: Any) -> None:
        self._loss = logs.get("loss", self._loss)

    def on_save(
        self, _args: TrainingArguments, state: TrainerState, _control: TrainerControl, **_: Any
    ) -> None:
        self._reports.reporter.update(checkpoint_step=state.global_step)
        self._switch("data_wait")

    def on_train_end(self, *_: Any, **_others: Any) -> None:
        self._switch("idle")
        self._reports.reporter.send()

    def _after_evaluation(self, control: TrainerControl) -> None:
        """The Trainer evaluates first, then saves, as its control says."""
        self._switch("checkpoint" if control.should_save else "data_wait")

    def _switch(self, phase: str) -> None:
        self._reports.reporter.clock.switch(phase)

    def _count(self, model: nn.Module, args: tuple[Any, ...], others: dict[str, Any]) -> None:
        tensors = [each for each in (*args, *others.values()) if isinstance(each, Tensor)]
        if model.training and tensors:
            self._samples += len(tensors[0])
