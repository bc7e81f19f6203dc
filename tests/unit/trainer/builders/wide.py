"""A task whose blocks have attention, and layers that are wide enough for 8-bit products."""

import sys
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from kopeck_trainer import TrainConfig, TrainingTask

WIDTH = 32
LENGTH = 8
TARGETS = 16
NARROW = 5


class Wide(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Linear(WIDTH, WIDTH, bias=False)
        self.blocks = nn.ModuleList(WideBlock() for _ in range(2))
        self.head = nn.Linear(WIDTH, TARGETS)

    def forward(self, x: Tensor) -> Tensor:
        x = self.embedding(x)
        for block in self.blocks:
            x = block(x)
        result: Tensor = self.head(x)
        return result


class WideBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.inner = nn.Linear(WIDTH, 2 * WIDTH)
        self.outer = nn.Linear(2 * WIDTH, WIDTH)
        self.narrow = nn.Linear(WIDTH, NARROW)
        self.wide = nn.Linear(NARROW, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.qkv(self.norm(x)).chunk(3, dim=-1)
        x = x + self.out(functional.scaled_dot_product_attention(query, key, value, is_causal=True))
        x = x + self.outer(functional.gelu(self.inner(x)))
        result: Tensor = x + self.wide(torch.tanh(self.narrow(x)))
        return result


class Means:
    """Sequences of vectors, and the means of the vectors until each."""

    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        x = torch.randn(LENGTH, WIDTH, generator=torch.Generator().manual_seed(index))
        counts = torch.arange(1, LENGTH + 1)[:, None]
        return x, (x.cumsum(0) / counts)[:, :TARGETS]


def squared_error(output: Tensor, batch: tuple[Tensor, Tensor]) -> tuple[Tensor, int]:
    _, target = batch
    return (output.float() - target).square().sum(), target.numel()


def build(_config: TrainConfig) -> TrainingTask:
    return TrainingTask(
        model=Wide,
        loss=squared_error,
        dataset=Means(),
        optimizer=partial(torch.optim.AdamW, lr=0.01),
    )


def build_without_torchao(config: TrainConfig) -> TrainingTask:
    """As in an image that has none."""
    sys.modules["torchao"] = None  # type: ignore[assignment]
    return build(config)
