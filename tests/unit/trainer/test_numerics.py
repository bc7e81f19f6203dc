"""What a training computes does not depend on how many ranks compute it. Real ranks over gloo."""

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Generator, Tensor, nn

from kopeck_trainer.batches import Batches
from kopeck_trainer.config import TrainingConfig
from kopeck_trainer.errors import ConfigurationError
from kopeck_trainer.meta import with_parameters_on_meta
from kopeck_trainer.parallelize import find_blocks
from kopeck_trainer.phases import PhaseClock
from kopeck_trainer.sharding import own_groups
from kopeck_trainer.step_split import StepSplit
from kopeck_trainer.task import TrainingTask
from kopeck_trainer.timeline import HostTimeline
from kopeck_trainer.update import prepare_optimizer
from tests.unit.trainer.builders import toy
from tests.unit.trainer.on_ranks import on_ranks
from tests.unit.trainer.small_trainings import (
    CPU,
    TRAINING,
    a_step,
    full,
    losses,
    no_wishes,
    sharded,
    the_batches,
    the_reader,
    the_toy,
    whole,
    with_sharding,
)


def first_values() -> dict[str, list[float]]:
    return full(sharded(the_toy()))


def test_first_values_are_the_same_on_one_two_and_three_ranks(tmp_path: Path) -> None:
    [alone] = on_ranks(1, first_values, tmp_path)
    assert on_ranks(2, first_values, tmp_path) == [alone] * 2
    assert on_ranks(3, first_values, tmp_path) == [alone] * 3
    assert alone["blocks.0.inner.weight"] != alone["blocks.1.inner.weight"]


@pytest.mark.parametrize("max_grad_norm", [None, 0.1])
def test_losses_and_weights_are_the_same_at_every_world_size_and_accumulation(
    tmp_path: Path, max_grad_norm: float | None
) -> None:
    training = replace(TRAINING, max_grad_norm=max_grad_norm)
    whole_batch = replace(training, micro_batch_size=12)
    [expected] = on_ranks(1, losses, tmp_path, whole_batch)
    assert expected[0] > expected[2]
    for ranks, micro_batch in [(1, 2), (2, 6), (2, 2), (3, 2)]:
        split = replace(training, micro_batch_size=micro_batch)
        for found in on_ranks(ranks, losses, tmp_path, split):
            assert found == pytest.approx(expected, rel=1e-5)


def sgd(named: Iterable[tuple[str, nn.Parameter]], lr: float) -> torch.optim.SGD:
    """As fast as AdamW with the rate that is meant for it would be too much."""
    return torch.optim.SGD((parameter for _, parameter in named), lr=lr / 10, momentum=0.9)


def tuning(named: Iterable[tuple[str, nn.Parameter]], lr: float) -> torch.optim.AdamW:
    """Of some parameters of each group but one, and of none of that."""
    chosen = [each for name, each in named if "inner" in name or name == "blocks.0.outer.weight"]
    return torch.optim.AdamW(chosen, lr=lr)


@pytest.mark.parametrize(
    ("precision", "max_grad_norm", "optimizer"),
    [
        ("fp32", None, torch.optim.AdamW),
        ("fp32", 0.1, torch.optim.AdamW),
        ("bf16", None, torch.optim.AdamW),
        ("bf16", 0.1, torch.optim.AdamW),
        ("fp32", 0.1, sgd),
        ("fp32", 0.1, tuning),
    ],
)
def test_every_strategy_computes_the_same(
    tmp_path: Path, precision: Any, max_grad_norm: float | None, optimizer: Any
) -> None:
    training = replace(TRAINING, precision=precision, max_grad_norm=max_grad_norm)
    full_sharding = with_sharding(training, "full")
    [expected] = on_ranks(1, losses, tmp_path, full_sharding, optimizer)
    for ranks, strategy, micro_batches in [
        (1, "auto", 4),
        (2, "replicate", 2),
        (4, "hybrid", 1),
        (4, "hybrid", 3),
        (4, "replicate", 3),
        (3, "full", 2),
    ]:
        split = replace(training, micro_batch_size=12 // ranks // micro_batches)
        for found in on_ranks(ranks, losses, tmp_path, with_sharding(split, strategy), optimizer):
            assert found == pytest.approx(expected, rel=1e-5 if precision == "fp32" else 2e-3)


def probes(training: TrainingConfig, optimizer_of: Any) -> tuple[float, ...]:
    """Loss and norm of two probes of the global batch, and whether they left weights alone."""
    task = the_toy()
    model = sharded(task, training)
    step = a_step(training, task, model, optimizer_of)
    [batch] = the_batches(training, task).of_step(0)
    before = full(model)
    results = [*step.probe(batch), *step.probe(batch)]
    return (*results, full(model) == before)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_probe_finds_the_same_norm_under_every_strategy_and_updates_nothing(
    tmp_path: Path, precision: Any
) -> None:
    training = replace(TRAINING, precision=precision, micro_batch_size=12)
    full_sharding = with_sharding(training, "full")
    [expected] = on_ranks(1, probes, tmp_path, full_sharding, torch.optim.AdamW)
    assert expected[:2] == expected[2:4]
    assert expected[1] > 0
    assert expected[4]
    for ranks, strategy in [(1, "auto"), (2, "replicate"), (4, "hybrid"), (2, "auto")]:
        split = with_sharding(replace(training, micro_batch_size=12 // ranks), strategy)
        for optimizer in (torch.optim.AdamW, torch.optim.Adagrad):
            for found in on_ranks(ranks, probes, tmp_path, split, optimizer):
                assert found == pytest.approx(expected, rel=1e-5 if precision == "fp32" else 2e-3)


@pytest.mark.parametrize("micro_batch", [12, 4])
@pytest.mark.parametrize("optimizer", [torch.optim.AdamW, torch.optim.Adagrad])
def test_one_rank_without_fsdp_computes_exactly_what_it_does_with_it(
    tmp_path: Path, micro_batch: int, optimizer: Any
) -> None:
    training = replace(TRAINING, precision="bf16", micro_batch_size=micro_batch)
    [with_fsdp] = on_ranks(1, losses, tmp_path, with_sharding(training, "full"), optimizer)
    assert on_ranks(1, losses, tmp_path, training, optimizer) == [with_fsdp]


@pytest.mark.parametrize("optimizer", [torch.optim.AdamW, torch.optim.Adagrad])
def test_one_rank_clips_as_it_does_with_fsdp(tmp_path: Path, optimizer: Any) -> None:
    """FSDP's norm is summed up in another order."""
    training = replace(TRAINING, max_grad_norm=0.1)
    [with_fsdp] = on_ranks(1, losses, tmp_path, with_sharding(training, "full"), optimizer)
    [without] = on_ranks(1, losses, tmp_path, training, optimizer)
    assert without == pytest.approx(with_fsdp, rel=1e-6)


def after_an_infinite_gradient(training: TrainingConfig) -> list[tuple[list[bool], bool]]:
    """By optimizer: which of three steps were skipped, and whether only those left all weights."""
    return [_after_an_infinite_gradient(training, optimizer) for optimizer in ADAMW_AND_SGD]


ADAMW_AND_SGD = (
    torch.optim.AdamW,
    partial(torch.optim.AdamW, fused=False),
    partial(torch.optim.SGD, momentum=0.9, fused=False),
    partial(torch.optim.SGD, momentum=0.9, weight_decay=0.1),
)


def _after_an_infinite_gradient(
    training: TrainingConfig, optimizer_of: Any
) -> tuple[list[bool], bool]:
    calls = count()

    def loss(output: Tensor, batch: Any) -> tuple[Tensor, int]:
        """Finite; its gradient, in the second step on the first rank, is not."""
        if next(calls) == 1 and torch.distributed.get_rank() == 0:
            output = output + (output - output.detach()).sqrt() * 0
        return toy.squared_error(output, batch)

    task = replace(the_toy(), loss=loss)
    model = sharded(task, training)
    step = a_step(training, task, model, lambda named, lr: optimizer_of([p for _, p in named], lr))
    batches = the_batches(training, task)
    weights, skipped = [full(model)], []
    for index in range(3):
        samples = index * training.global_batch_size
        totals = step.run(batches.of_step(samples), batches.per_step, no_wishes()).read()
        assert math.isfinite(totals.loss)
        skipped.append(totals.is_skipped)
        weights.append(full(model))
    return skipped, [one == other for one, other in pairwise(weights)] == skipped


@pytest.mark.parametrize(("ranks", "strategy"), [(1, "auto"), (2, "full")])
def test_a_gradient_that_is_not_finite_updates_nothing(
    tmp_path: Path, ranks: int, strategy: str
) -> None:
    training = replace(TRAINING, max_grad_norm=0.1, micro_batch_size=12 // ranks)
    for found in on_ranks(
        ranks, after_an_infinite_gradient, tmp_path, with_sharding(training, strategy)
    ):
        assert found == [([False, True, False], True)] * len(ADAMW_AND_SGD)


@pytest.mark.parametrize("reshard", [True, False])
def test_weights_may_stay_gathered_until_backward(tmp_path: Path, reshard: bool) -> None:  # noqa: FBT001
    [expected] = on_ranks(1, losses, tmp_path, TRAINING)
    training = with_sharding(TRAINING, "full", reshard=reshard)
    for found in on_ranks(2, losses, tmp_path, training):
        assert found == pytest.approx(expected, rel=1e-5)


def plain_losses(training: TrainingConfig) -> list[float]:
    """As `losses`, by a plain PyTorch loop over the same samples with torch's own clipping."""
    task = the_toy()
    start = full(sharded(task))
    model = toy.Toy()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.tensor(start[name]).view_as(parameter))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    reader = the_reader(training, task)
    batches = Batches(
        reader=reader,
        source=reader,
        micro_batch=training.global_batch_size,
        per_step=1,
        rank=0,
        ranks=1,
        device=CPU,
        split=StepSplit(PhaseClock("compute"), HostTimeline()),
    )
    results = []
    for index in range(training.steps or 0):
        [batch] = batches.of_step(index * training.global_batch_size)
        loss_sum, count = task.loss(model(batch[0]), batch)
        loss = loss_sum / count
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        if training.max_grad_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), training.max_grad_norm)
        optimizer.step()
        results.append(loss.item())
    return [*results, sum(parameter.sum().item() for parameter in model.parameters())]


@pytest.mark.parametrize("max_grad_norm", [None, 0.1])
def test_it_is_what_a_plain_loop_computes(tmp_path: Path, max_grad_norm: float | None) -> None:
    training = replace(TRAINING, max_grad_norm=max_grad_norm)
    [expected] = on_ranks(1, plain_losses, tmp_path, training)
    for found in on_ranks(2, losses, tmp_path, training):
        assert found == pytest.approx(expected, rel=1e-5)


class Headed(nn.Module):
    """An embedding and a head as large as a block, and a norm that is not."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(toy.WIDTH, 40)
        self.blocks = nn.ModuleList(toy.ToyBlock() for _ in range(2))
        self.norm = nn.LayerNorm(toy.WIDTH)
        self.head = nn.Linear(toy.WIDTH, 40, bias=False)


def test_what_is_as_large_as_a_block_is_gathered_by_itself() -> None:
    model = Headed()
    blocks = list(model.blocks)
    assert own_groups(model, blocks) == [*blocks, model.embedding, model.head]
    model.head.weight = model.embedding.weight  # of one shape or not: they are one parameter
    assert own_groups(model, blocks) == blocks
    assert own_groups(model, [model]) == []


class TiedBlocks(toy.Toy):
    """Two blocks share a weight, and one shares a module with what is outside."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks.append(toy.ToyBlock())
        self.blocks[1].inner.weight = self.blocks[0].inner.weight
        self.norm = self.blocks[1].norm


def tied_losses(training: TrainingConfig) -> list[float]:
    return losses(training, task_of=lambda: replace(the_toy(), model=TiedBlocks))


def test_blocks_that_share_weights_are_gathered_with_the_rest(tmp_path: Path) -> None:
    model = TiedBlocks()
    assert own_groups(model, list(model.blocks)) == [model.blocks[2]]
    [expected] = on_ranks(1, tied_losses, tmp_path, TRAINING)
    for found in on_ranks(2, tied_losses, tmp_path, TRAINING):
        assert found == pytest.approx(expected, rel=1e-5)


class Tied(nn.Module):
    """A head that shares the weights of the embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(7, 3)
        self.head = nn.Linear(3, 7, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, ids: Tensor) -> Tensor:
        logits: Tensor = self.head(self.embedding(ids))
        return logits


def tied_after_a_step() -> tuple[bool, float]:
    model = sharded(replace(the_toy(), model=Tied))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.autograd.backward(model(torch.arange(7)).square().sum())
    optimizer.step()
    embedding = model.get_parameter("embedding.weight")
    difference = model(torch.arange(7)) - torch.zeros(7, 7)
    weight = whole(embedding)
    return len(list(model.parameters())) == 1, (difference - weight @ weight.T).abs().max().item()


@pytest.mark.parametrize("ranks", [1, 2])
def test_tied_parameters_stay_one(tmp_path: Path, ranks: int) -> None:
    for is_one, difference in on_ranks(ranks, tied_after_a_step, tmp_path):
        assert is_one
        assert difference < 1e-5


class Forgetful(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))


def refusal(task: TrainingTask) -> str:
    with pytest.raises(ConfigurationError) as refused:
        sharded(task)
    return str(refused.value)


def refusal_of_forgetful() -> str:
    return refusal(replace(the_toy(), model=Forgetful))


def test_a_parameter_that_nothing_fills_is_refused(tmp_path: Path) -> None:
    [sentence] = on_ranks(1, refusal_of_forgetful, tmp_path)
    assert sentence.startswith("spec.entrypoint: parameter scale of the model is never filled; ")


def fill(name: str, parameter: Tensor, generator: Generator) -> None:
    parameter.fill_(len(name)) if name == "scale" else parameter.normal_(generator=generator)


def values_by_own_init() -> dict[str, list[float]]:
    return full(sharded(replace(the_toy(), model=Forgetful, init=fill)))


def test_an_init_of_ones_own_fills_what_modules_do_not(tmp_path: Path) -> None:
    assert on_ranks(2, values_by_own_init, tmp_path) == [{"scale": [5.0] * 3}] * 2


def test_parameters_are_on_meta_and_buffers_real() -> None:
    model = with_parameters_on_meta(toy.Toy)
    assert {parameter.device.type for parameter in model.parameters()} == {"meta"}
    assert torch.equal(model.get_buffer("ones"), torch.ones(toy.WIDTH))
    assert not next(toy.Toy().parameters()).is_meta


def test_blocks_are_the_children_of_the_largest_list_of_one_class() -> None:
    model = nn.Module()
    model.small = nn.ModuleList([nn.Linear(1, 1)] * 5)
    model.mixed = nn.ModuleList([nn.Linear(99, 99), nn.ReLU()])
    model.large = nn.ModuleList([nn.Linear(9, 9), nn.Linear(9, 9)])
    assert find_blocks(the_toy(), model) == [*model.large]
    assert find_blocks(the_toy(), plain := nn.Linear(1, 1)) == [plain]
    chosen = replace(the_toy(), blocks=lambda module: [module.small[0]])
    assert find_blocks(chosen, model) == [model.small[0]]


@pytest.mark.parametrize(
    ("optimizer", "fused"),
    [
        (torch.optim.AdamW, True),
        (torch.optim.SGD, True),
        (partial(torch.optim.AdamW, foreach=True), None),
        (partial(torch.optim.AdamW, fused=False), False),
    ],
)
def test_a_fused_optimizer_is_used_unless_the_user_chose(optimizer: Any, fused: object) -> None:
    made = optimizer((model := nn.Linear(1, 1)).parameters(), lr=0.1)
    prepare_optimizer(made, model)
    assert made.param_groups[0]["fused"] is fused
    adagrad = torch.optim.Adagrad(model.parameters())  # has none on GPUs
    prepare_optimizer(adagrad, model)
    assert adagrad.param_groups[0]["fused"] is None


class OwnAdamW(torch.optim.AdamW):
    """May have a step of its own, which knows nothing of scaled gradients."""


def test_the_fused_kernel_of_a_derived_class_is_not_taken_for_granted() -> None:
    made = OwnAdamW((model := nn.Linear(1, 1)).parameters())
    prepare_optimizer(made, model)
    assert made.param_groups[0]["fused"] is None


def test_an_optimizer_of_other_parameters_is_refused() -> None:
    made = torch.optim.AdamW(nn.Linear(1, 1).parameters())
    with pytest.raises(ConfigurationError, match="make it of the named parameters"):
        prepare_optimizer(made, nn.Linear(1, 1))
