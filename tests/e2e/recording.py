"""The example's task, which writes down every sample that a rank takes. Runs inside of pods."""

import os
import time
from pathlib import Path
from typing import Any

import byte_llama

from kopeck_trainer import TrainConfig, TrainingTask

SECONDS_PER_SAMPLE = 0.02
"""In the first attempt: else its 200 steps may be over before a test has ended it."""


class Recorded:
    """A data set that appends the number of each sample to a file per attempt and rank."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        attempt, rank = os.environ["KOPECK_ATTEMPT"], os.environ["RANK"]
        file = Path(f"/checkpoints/samples-a{attempt}-r{rank}")
        self._file = file.open("a", buffering=1)
        self._seconds = SECONDS_PER_SAMPLE if attempt == "0" else 0.0

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, index: int) -> Any:
        time.sleep(self._seconds)
        self._file.write(f"{index}\n")
        return self._dataset[index]


def build(config: TrainConfig) -> TrainingTask:
    task = byte_llama.build(config)
    values = {name: getattr(task, name) for name in ("model", "loss", "optimizer")}
    return TrainingTask(dataset=Recorded(task.dataset), **values)
