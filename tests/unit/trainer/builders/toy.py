"""A tiny task for tests of the trainer: two blocks that learn to add up their inputs."""

import itertools
import os
import sys
import time
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor, nn

from kopeck_trainer import TrainConfig, TrainingTask

WIDTH = 6
SAMPLES = 40


class Toy(nn.Module):
    """Widths that two or three ranks cannot share evenly, and a buffer that must stay real."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(ToyBlock() for _ in range(2))
        self.head = nn.Linear(WIDTH, 1)
        self.register_buffer("ones", torch.ones(WIDTH), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        x = x * self.ones
        for block in self.blocks:
            x = block(x)
        result: Tensor = self.head(x)
        return result


class ToyBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.inner = nn.Linear(WIDTH, 5)
        self.outer = nn.Linear(5, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = x + self.outer(torch.tanh(self.inner(self.norm(x))))
        return result


class Sums:
    """Vectors and their sums; each read takes `seconds`."""

    def __init__(self, seconds: float = 0.0) -> None:
        self._seconds = seconds

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        time.sleep(self._seconds)
        x = torch.randn(WIDTH, generator=torch.Generator().manual_seed(index))
        return x, x.sum(0, keepdim=True)


def squared_error(output: Tensor, batch: tuple[Tensor, Tensor]) -> tuple[Tensor, int]:
    _, target = batch
    return (output - target).square().sum(), target.numel()


def build(config: TrainConfig) -> TrainingTask:
    return TrainingTask(
        model=Toy,
        loss=squared_error,
        dataset=Sums(config.parameters.get("secondsPerSample", 0.0)),
        optimizer=partial(torch.optim.AdamW, lr=0.01),
    )


def build_built(config: TrainConfig) -> TrainingTask:
    return replace(build(config), model=Toy())


def build_nothing(_config: TrainConfig) -> None:
    return None


def build_crashing(config: TrainConfig) -> TrainingTask:
    """Its loss raises on rank 1."""

    def crash(output: Tensor, batch: tuple[Tensor, Tensor]) -> tuple[Tensor, int]:
        if os.environ["RANK"] == "1":
            raise ValueError("the labels are gone")
        return squared_error(output, batch)

    return TrainingTask(
        model=Toy, loss=crash, dataset=Sums(), optimizer=partial(torch.optim.AdamW, lr=0.01)
    )


def build_hanging(config: TrainConfig) -> TrainingTask:
    """Its loss hangs on rank 1, in the third step."""
    calls = itertools.count(1)

    def hang(output: Tensor, batch: tuple[Tensor, Tensor]) -> tuple[Tensor, int]:
        if os.environ["RANK"] == "1" and next(calls) == 5:
            time.sleep(1000)
        return squared_error(output, batch)

    return replace(build(config), loss=hang)


def build_diverging(config: TrainConfig) -> TrainingTask:
    """Its loss is NaN from the third micro-batch on, on the last rank."""
    calls = itertools.count(1)
    is_last = int(os.environ["RANK"]) == int(os.environ["WORLD_SIZE"]) - 1

    def diverge(output: Tensor, batch: tuple[Tensor, Tensor]) -> tuple[Tensor, int]:
        loss, count = squared_error(output, batch)
        return (loss * float("nan") if is_last and next(calls) >= 3 else loss), count

    return replace(build(config), loss=diverge)


def build_exploding(config: TrainConfig) -> TrainingTask:
    """The gradient of its third micro-batch is infinite, and its loss is not."""
    calls = itertools.count(1)

    def explode(output: Tensor, batch: tuple[Tensor, Tensor]) -> tuple[Tensor, int]:
        if next(calls) == 3:
            output.register_hook(lambda gradient: gradient * float("inf"))
        return squared_error(output, batch)

    return replace(build(config), loss=explode)


def build_aloud(config: TrainConfig) -> TrainingTask:
    """Says so."""
    sys.stderr.write("the task is built\n")
    return build(config)


not_a_function = 3
