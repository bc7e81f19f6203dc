"""The toy, whose data is read by processes of their own, and the faults of such reads."""

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import toy
from torch import Tensor
from torch.utils.data import default_collate, get_worker_info

from kopeck_trainer import TrainConfig, TrainingTask
from kopeck_trainer.permutation import sample_id

FAULTY_POSITION = 6


class OwnError(Exception):
    """One that pickle cannot make anew."""

    def __init__(self, place: str, sample: int) -> None:
        super().__init__(f"{place} has no sample {sample}")


class Faulty(toy.Sums):
    """Leaves a file for each process that reads, and has one faulty sample."""

    def __init__(self, folder: Path, fault: str) -> None:
        super().__init__()
        self._folder = folder
        self._fault = fault
        self._faulty_sample = sample_id(FAULTY_POSITION, toy.SAMPLES, seed=0)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        if get_worker_info():
            (self._folder / f"worker-{os.getpid()}").touch()
        if index == self._faulty_sample:
            self._fail(index)
            if self._fault == "long":
                return torch.ones(toy.WIDTH + 1), torch.ones(1)
        return super().__getitem__(index)

    def _fail(self, index: int) -> None:
        if self._fault == "ValueError":
            raise ValueError(f"sample {index} is torn")
        if self._fault == "OwnError":
            raise OwnError("the store", index)
        if self._fault == "SIGKILL":
            os.kill(os.getpid(), signal.SIGKILL)


def build(config: TrainConfig) -> TrainingTask:
    """`spec.parameters.fault` is that of the sample at FAULTY_POSITION."""
    fault = config.parameters.get("fault", "none")
    folder = Path(os.environ["KOPECK_RUN_DIR"])

    def collate(samples: list[Any]) -> Any:
        return [*default_collate(samples), *([lambda: None] if fault == "lambda" else [])]

    def loss(output: Tensor, batch: Any) -> tuple[Tensor, int]:
        return toy.squared_error(output, batch[:2])

    if config.parameters.get("diverges"):
        return replace(toy.build_diverging(config), dataset=Faulty(folder, fault))
    return replace(toy.build(config), dataset=Faulty(folder, fault), collate=collate, loss=loss)
