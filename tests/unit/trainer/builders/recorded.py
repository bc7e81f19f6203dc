"""The toy, which leaves a line in a file of each rank for every step that it took.

`parameters.records` is the folder of the files. A line has the step, the loss that was reported of
it, the norm of the clipped gradient, over all ranks, and the samples that the rank read for it.
"""

import json
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import toy
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.optim import Optimizer

from kopeck_trainer import TrainConfig, TrainingTask
from kopeck_trainer.reporter import process_reporter


@dataclass
class Record:
    file: Path
    norm: float | None = None
    samples: list[int] = field(default_factory=list)

    def step_ended(self, *, step: int, loss: float, **_figures: Any) -> None:
        line = {"step": step, "loss": loss, "gradientNorm": self.norm, "samples": self.samples}
        with self.file.open("a") as file:
            file.write(json.dumps(line) + "\n")
        self.samples = []

    def before_update(self, optimizer: Any, *_arguments: Any) -> None:
        """The norm of what `optimizer` makes of the gradients, which it scales as it reads them."""
        scale = getattr(optimizer, "grad_scale", None)
        if scale is None:  # torch steps once, by nothing, to make the state that it loads into
            return
        parameters = [each for group in optimizer.param_groups for each in group["params"]]
        norm = nn.utils.get_total_norm([each.grad for each in parameters])
        whole = norm.full_tensor() if isinstance(norm, DTensor) else norm
        self.norm = (whole / scale).item()


class RecordedSums(toy.Sums):
    def __init__(self, record: Record) -> None:
        super().__init__()
        self._record = record

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        self._record.samples.append(index)
        return super().__getitem__(index)


def build(config: TrainConfig) -> TrainingTask:
    folder = Path(config.parameters["records"])
    record = Record(folder / f"rank-{os.environ['RANK']}")
    task = toy.build(config)

    def optimizer(named: Any) -> Optimizer:
        made = task.optimizer(named)
        made.register_step_pre_hook(record.before_update)
        return made

    _tell_also(record)
    return replace(task, dataset=RecordedSums(record), optimizer=optimizer)


def _tell_also(record: Record) -> None:
    """Lines of progress are a second apart, and rounded: the reporter hears of each step."""
    reporter = process_reporter()
    step_ended = reporter.step_ended

    def step_ended_recorded(**figures: Any) -> None:
        record.step_ended(**figures)
        step_ended(**figures)

    reporter.step_ended = step_ended_recorded
