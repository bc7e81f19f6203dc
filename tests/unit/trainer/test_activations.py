"""Blocks that keep less for their backward compute the same. Real forwards and backwards."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._python_dispatch import TorchDispatchMode

from kopeck_trainer.activations import spare_activations
from kopeck_trainer.config import ActivationsConfig, TrainConfig
from kopeck_trainer.task import TrainingTask
from tests.unit.trainer.builders import wide
from tests.unit.trainer.on_ranks import on_ranks
from tests.unit.trainer.small_trainings import TRAINING, losses

NONE = ActivationsConfig(mode="none")
FULL = ActivationsConfig(mode="full")
SELECTIVE = ActivationsConfig(mode="selective")
HALF = ActivationsConfig(mode="budget", memory_budget=0.5)
NOTHING = ActivationsConfig(mode="budget", memory_budget=0.0)

PARTITIONED = "aot_eager_decomp_partition"
"""Splits forward and backward as Inductor does, and compiles neither."""

BLOCKS = 2


@dataclass
class Operators(TorchDispatchMode):
    """Counts the matrix products and attentions that run inside."""

    ran: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        super().__init__()

    def __torch_dispatch__(
        self, operator: Any, _types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self.ran[operator.__name__.partition(".")[0]] += 1
        return operator(*args, **(kwargs or {}))


@contextmanager
def bytes_kept(model: torch.nn.Module) -> Iterator[dict[int, int]]:
    """Of what the forwards inside keep for their backward, by address; weights apart."""
    weights = {each.untyped_storage().data_ptr() for each in model.parameters()}
    kept: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        yield kept


@dataclass(frozen=True)
class Seen:
    """Of one forward and backward."""

    loss: float
    gradients: float
    again: dict[str, int]
    """Operators that ran in the backward beside its own."""
    kept_bytes: int


def seen(activations: ActivationsConfig, *, is_compiled: bool) -> Seen:
    torch.manual_seed(0)
    torch._dynamo.reset()  # a budget is no reason to compile again
    model = wide.Wide()
    spare_activations(activations, list(model.blocks))
    assert [name for name, _ in model.named_parameters()] == [
        name for name, _ in wide.Wide().named_parameters()
    ]
    for block in model.blocks if is_compiled else ():
        block.compile(backend=PARTITIONED, fullgraph=True, dynamic=False)
    x = torch.randn(4, wide.LENGTH, wide.WIDTH)
    with bytes_kept(model) as kept:
        loss = model(x).square().sum()
    with Operators() as operators:
        torch.autograd.backward(loss)
    forwards = ("addmm", "_scaled_dot_product_flash_attention_for_cpu")
    return Seen(
        loss=loss.item(),
        gradients=sum(
            each.grad.norm().item() for each in model.parameters() if each.grad is not None
        ),
        again={name: operators.ran[name] for name in forwards},
        kept_bytes=sum(kept.values()),
    )


def eager_and_compiled() -> tuple[list[Seen], list[Seen]]:
    """In order of what they keep; the budget last, which holds for the whole process."""
    eager = [seen(each, is_compiled=False) for each in (NONE, SELECTIVE, FULL)]
    compiled = [seen(each, is_compiled=True) for each in (NONE, SELECTIVE, FULL, HALF, NOTHING)]
    return eager, compiled


def test_less_is_kept_and_computed_again_with_the_same_loss_and_gradients(tmp_path: Path) -> None:
    [(eager, compiled)] = on_ranks(1, eager_and_compiled, tmp_path)
    [none, selective, full] = eager
    for each in (*eager, *compiled):
        assert (each.loss, each.gradients) == pytest.approx((none.loss, none.gradients), rel=1e-5)

    products, attention = none.again
    assert none.again == {products: 0, attention: 0}
    assert selective.again == {products: 2 * BLOCKS, attention: 0}  # those of 96 and 64 from 32
    assert full.again == {products: 5 * BLOCKS, attention: BLOCKS}  # all but the last

    [none, selective, full, half, nothing] = [each.kept_bytes for each in compiled]
    assert none > selective > full
    assert none > half > nothing
    assert half <= 0.6 * none
    assert nothing == full


def the_wide() -> TrainingTask:
    return wide.build(TrainConfig())


def losses_by_mode(backend: str | None) -> list[list[float]]:
    modes = (NONE, SELECTIVE, FULL, *((HALF,) if backend else ()))
    return [
        losses(replace(TRAINING, activations=each), task_of=the_wide, backend=backend)
        for each in modes
    ]


@pytest.mark.parametrize("backend", [None, PARTITIONED])
def test_two_ranks_train_alike_in_every_mode(tmp_path: Path, backend: str | None) -> None:
    for none, *others in on_ranks(2, losses_by_mode, tmp_path, backend):
        assert none[0] > none[2]
        for found in others:
            assert found == pytest.approx(none, rel=1e-5)
