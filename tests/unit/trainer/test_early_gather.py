"""Weights are gathered as soon as they are updated; no forward computes with old ones."""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.distributed.fsdp import fully_shard

from kopeck_trainer.early_gather import EarlyGather
from kopeck_trainer.fsdp_groups import groups
from kopeck_trainer.working_weights import Updates, local
from tests.unit.trainer.on_ranks import on_ranks


class Branching(nn.Module):
    """Uses its second branch only if asked. The weight of its own is tied to itself.

    It holds its first branch twice, as encoder and decoder do with one embedding.
    """

    def __init__(self) -> None:
        super().__init__()
        self.own = nn.Parameter(torch.ones(4))
        self.tied = self.own
        self.always = nn.Linear(4, 4)
        self.sometimes = nn.Linear(4, 4)
        self.again = nn.ModuleList([self.always])

    def forward(self, x: Tensor, *, branches: bool) -> Tensor:
        x = self.always(x) * self.own
        return self.sometimes(x) if branches else x


def a_sharded_model() -> Branching:
    model = Branching()
    for module in (model.always, model.sometimes, model):
        fully_shard(module, reshard_after_forward=False)
    return model


def test_each_weight_is_updated_once_and_no_group_is_gathered_before_its_own(
    tmp_path: Path,
) -> None:
    [names] = on_ranks(1, _names_by_group, tmp_path)

    assert names == [
        ("", ["own"]),
        ("always", ["always.weight", "always.bias"]),
        ("sometimes", ["sometimes.weight", "sometimes.bias"]),
    ]


def _names_by_group() -> list[tuple[str, list[str]]]:
    model = a_sharded_model()
    modules = {module: name for name, module in model.named_modules()}
    names = {parameter: name for name, parameter in model.named_parameters()}
    return [
        (modules[module], [names[master] for master in masters])
        for module, masters in groups(model)
    ]


def test_what_no_forward_used_is_gathered_again_after_the_next_update(tmp_path: Path) -> None:
    for results in on_ranks(2, _outputs_of_an_early_and_a_plain_model, tmp_path):
        for early, plain in results:
            assert early == plain
        assert all(one != other for (one, _), (other, _) in pairwise(results))


def _outputs_of_an_early_and_a_plain_model() -> list[tuple[list[float], list[float]]]:
    torch.manual_seed(1)
    early = a_sharded_model()
    torch.manual_seed(1)
    plain = a_sharded_model()
    gather = EarlyGather(early)
    return [
        (_step(early, branches, gather.update), _step(plain, branches, _call))
        for branches in (True, False, True, False, False, True)
    ]


def _step(model: Branching, branches: bool, update: Callable[[Updates], None]) -> list[float]:  # noqa: FBT001
    output = model(torch.ones(2, 4), branches=branches)
    torch.autograd.backward(output.sum())
    with torch.no_grad():
        update({master: partial(local(master).mul_, 0.5) for master in model.parameters()})
    model.zero_grad()
    result: list[float] = output.flatten().tolist()
    return result


def _call(updates: Updates) -> None:
    for update in updates.values():
        update()
