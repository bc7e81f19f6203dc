"""The model of `llama`, with a first window soon, and one rank that is late if it is asked to."""

import os
import time
from typing import Any

import torch

from kopeck_trainer import TrainConfig, TrainingTask
from kopeck_trainer.optimizer_step import OptimizerStep
from kopeck_trainer.windows import period
from tests.gpu import llama

LATE_RANK = 1
FIRST_SECONDS = 15.0
CYCLES_PER_SECOND = 1.8e9
"""About what a GPU's clock is; the trace tells how long the pause was."""


def build(config: TrainConfig) -> TrainingTask:
    """`spec.parameters.late_seconds` is how long the late rank pauses after each backward.

    There, before the reduction of the losses, no rank is ahead of another any more: what the other
    one waits is the pause, and nothing else.
    """
    period.FIRST_SECONDS = FIRST_SECONDS
    late_seconds = config.parameters.pop("late_seconds", 0.0)
    if late_seconds and int(os.environ["RANK"]) == LATE_RANK:
        _pause_before_reductions(late_seconds)
    return llama.build(config)


def _pause_before_reductions(seconds: float) -> None:
    wished = OptimizerStep._wished

    def wished_late(step: OptimizerStep, wishes: Any) -> Any:
        pause(seconds)
        return wished(step, wishes)

    OptimizerStep._wished = wished_late  # type: ignore[method-assign]


def pause(seconds: float) -> None:
    """Of the GPU, in the stream that computes."""
    if torch.cuda.is_available():
        torch.cuda._sleep(int(seconds * CYCLES_PER_SECOND))
    else:
        time.sleep(seconds)
