"""The model of `llama`, with a first window soon, and one rank that is late if it is asked to."""

import os
import time
from dataclasses import replace
from typing import Any

import torch
from torch.utils.data import default_collate

from kopeck_trainer import TrainConfig, TrainingTask
from kopeck_trainer.windows import period
from tests.gpu import llama

LATE_RANK = 1
FIRST_SECONDS = 15.0
CYCLES_PER_SECOND = 1.8e9
"""About what a GPU's clock is; the trace tells how long the pause was."""


def build(config: TrainConfig) -> TrainingTask:
    """`spec.parameters.late_seconds` is how long the late rank pauses before each micro-batch."""
    period.FIRST_SECONDS = FIRST_SECONDS
    late_seconds = config.parameters.pop("late_seconds", 0.0)
    is_late = late_seconds and int(os.environ["RANK"]) == LATE_RANK

    def collate(samples: list[Any]) -> Any:
        if is_late:
            pause(late_seconds)
        return default_collate(samples)

    return replace(llama.build(config), collate=collate)


def pause(seconds: float) -> None:
    """Of the GPU, in the stream that computes: nothing of the step can begin before its end."""
    if torch.cuda.is_available():
        torch.cuda._sleep(int(seconds * CYCLES_PER_SECOND))
    else:
        time.sleep(seconds)
