"""Arithmetic that is counted, and what the device could do."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from kopeck_trainer.flops import flops_per_sample
from kopeck_trainer.peak_flops import peak_flops
from kopeck_trainer.task import TrainingTask

LENGTH, DIM, HEADS, GROUPS = 16, 32, 4, 2


class Attention(nn.Module):
    """Four query heads on two groups of keys and values."""

    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(DIM, DIM, bias=False)
        self.key_value = nn.Linear(DIM, DIM, bias=False)
        self.register_buffer("scale", torch.ones(DIM))

    def forward(self, x: Tensor) -> Tensor:
        query = self._heads(self.query(x * self.scale), HEADS)
        key, value = self._heads(self.key_value(x), 2 * GROUPS).chunk(2, dim=1)
        return functional.scaled_dot_product_attention(
            query, key, value, is_causal=True, enable_gqa=True
        )

    def _heads(self, x: Tensor, heads: int) -> Tensor:
        return x.unflatten(-1, (heads, -1)).transpose(1, 2)


class Data:
    """One sample is enough."""

    def __len__(self) -> int:
        return 1

    def __getitem__(self, _index: int) -> Tensor:
        return torch.ones(LENGTH, DIM)


def a_task(model: type[nn.Module]) -> TrainingTask:
    return TrainingTask(
        model=model,
        loss=lambda output, _batch: (output.sum(), output.numel()),
        dataset=Data(),
        optimizer=lambda named: torch.optim.SGD([each for _, each in named]),
    )


def test_products_and_attention_are_counted_three_times_as_if_nothing_was_masked() -> None:
    products = 2 * 2 * LENGTH * DIM * DIM
    attention = 2 * 2 * LENGTH * LENGTH * DIM
    assert flops_per_sample(a_task(Attention)) == 3 * (products + attention)


def test_counting_draws_no_numbers_that_training_would_have_drawn() -> None:
    torch.manual_seed(7)
    flops_per_sample(a_task(Attention))
    after = torch.rand(1)
    torch.manual_seed(7)
    assert torch.equal(after, torch.rand(1))


class Branching(nn.Module):
    """Looks at its numbers."""

    def forward(self, x: Tensor) -> Tensor:
        return x if x.sum().item() > 0 else -x


def test_a_model_that_needs_numbers_cannot_be_counted() -> None:
    assert flops_per_sample(a_task(Branching)) is None


@pytest.mark.parametrize(
    ("name", "teraflops"),
    [
        ("NVIDIA H200", 989),
        ("NVIDIA H100 PCIe", 756),
        ("NVIDIA H100 80GB HBM3", 989),
        ("NVIDIA A100-SXM4-80GB", 312),
        ("NVIDIA GB200", 2500),
        ("NVIDIA B200", 2250),
    ],
)
def test_a_known_device_has_a_peak(name: str, teraflops: int) -> None:
    assert peak_flops(name, "bf16") == teraflops * 1e12
    assert peak_flops(name, "fp32") is None
    assert peak_flops(name, "fp8") is None


def test_an_unknown_device_has_none() -> None:
    assert peak_flops("Tesla T4", "bf16") is None
