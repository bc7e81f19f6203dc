"""Models whose best compile mode, or whose fault in one, is known by construction."""

import time
from dataclasses import replace
from typing import Any

import torch
import toy
from torch import Tensor, nn

from kopeck_trainer import TrainConfig, TrainingTask
from kopeck_trainer.padding import IGNORED_TARGET

SLOW_SECONDS = 0.03


class Modal(nn.Module):
    """The toy, with blocks of another kind."""

    def __init__(self, block: type[nn.Module]) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(block() for _ in range(2))
        self.head = nn.Linear(toy.WIDTH, 1)

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        result: Tensor = self.head(x)
        return result


@torch.library.custom_op("toy::slow_copy", mutates_args=())
def slow_copy(x: Tensor) -> Tensor:
    time.sleep(SLOW_SECONDS)
    return x.clone()


@slow_copy.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


slow_copy.register_autograd(lambda _context, gradient: gradient)


class SlowCompiled(toy.ToyBlock):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(slow_copy(x) if torch.compiler.is_compiling() else x)


class SlowEager(toy.ToyBlock):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x if torch.compiler.is_compiling() else slow_copy(x))


class WrongCompiled(toy.ToyBlock):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x * 1.01 if torch.compiler.is_compiling() else x)


class BrokenEager(toy.ToyBlock):
    def forward(self, x: Tensor) -> Tensor:
        if not torch.compiler.is_compiling():
            raise RuntimeError("this kernel cannot run")
        return super().forward(x)


class Breaking(toy.ToyBlock):
    """Has a graph break."""

    def forward(self, x: Tensor) -> Tensor:
        torch._dynamo.graph_break()
        return super().forward(x)


class Dropping(toy.ToyBlock):
    """Half of its input is dropped, at random."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(nn.functional.dropout(x, 0.5))


class Normed(toy.ToyBlock):
    """Has running statistics, which each forward changes."""

    def __init__(self) -> None:
        super().__init__()
        self.batch_norm = nn.BatchNorm1d(toy.WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(self.batch_norm(x))


def build_breaking_loss(config: TrainConfig) -> TrainingTask:
    """Its loss has a graph break."""

    def breaking(output: Tensor, batch: Any) -> Any:
        torch._dynamo.graph_break()
        return toy.squared_error(output, batch)

    return replace(toy.build(config), loss=breaking)


def build_stray(config: TrainConfig) -> TrainingTask:
    """One batch, that of sample 7, is shorter than the others."""
    data = toy.Sums()
    stray = data[7][1]

    def collate(samples: list[tuple[Tensor, Tensor]]) -> Any:
        targets = torch.stack([target for _, target in samples])
        used = slice(1, None) if bool((targets == stray).any()) else slice(None)
        return torch.stack([x for x, _ in samples])[used], targets[used]

    return replace(toy.build(config), collate=collate)


class Growing(toy.Sums):
    """Sequences of 1 to 8 vectors."""

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        length = 1 + index % 8
        return torch.full((length, toy.WIDTH), 0.1 * index), torch.full((length, 1), index)


def length_error(output: Tensor, batch: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    is_real = batch[1] != IGNORED_TARGET
    return ((output - batch[1]).square() * is_real).sum(), is_real.sum()


def build_growing(config: TrainConfig) -> TrainingTask:
    return replace(toy.build(config), dataset=Growing(), loss=length_error)


def build(config: TrainConfig) -> TrainingTask:
    """`spec.parameters.block` names the class of the blocks."""
    block = globals()[config.parameters["block"]]
    return replace(toy.build(config), model=lambda: Modal(block))
