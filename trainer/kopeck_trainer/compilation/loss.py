"""The loss of a task, as something that is compiled when the blocks are."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from torch import nn

from kopeck_trainer.task import TrainingTask


class Loss(nn.Module):
    """Fused, it spares what eager keeps of a large output."""

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, output: Any, batch: Any) -> Any:
        return self.function(output, batch)


def with_compilable_loss(task: TrainingTask) -> TrainingTask:
    """`task` itself where its loss is marked with `torch.compiler.disable`."""
    if getattr(task.loss, "_torchdynamo_disable", False):
        return task
    return replace(task, loss=Loss(task.loss))
