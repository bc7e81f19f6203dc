"""The update that GPUs get, weights gathered while it goes on, trains as the plain one does.

Triton's interpreter runs its kernel on the CPU.
"""

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from kopeck_trainer.early_gather import FIRST_GROUPS
from kopeck_trainer.fsdp_groups import groups
from kopeck_trainer.update import FusedAdamW
from tests.unit.trainer.builders import toy
from tests.unit.trainer.on_ranks import on_ranks
from tests.unit.trainer.small_trainings import (
    TRAINING,
    a_step,
    full,
    no_wishes,
    sharded,
    the_batches,
    the_toy,
    with_sharding,
)


class Deep(toy.Toy):
    """Has groups that are gathered early, and others."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks.extend(toy.ToyBlock() for _ in range(FIRST_GROUPS))


Results = dict[str, tuple[list[float], dict[str, list[float]]]]


@pytest.mark.skipif(sys.platform != "linux", reason="Triton is there for Linux alone")
def test_weights_that_are_gathered_early_are_those_of_the_plain_update(tmp_path: Path) -> None:
    for found in on_ranks(2, _results, tmp_path):
        assert found["early"] == found["late"]
        losses, weights = found["early"]
        plain_losses, plain_weights = found["plain"]
        assert losses == pytest.approx(plain_losses, rel=1e-4)
        for name, values in weights.items():
            assert values == pytest.approx(plain_weights[name], rel=1e-2, abs=1e-3), name
        stale_losses, _ = found["stale"]
        assert losses != pytest.approx(stale_losses, rel=1e-3)  # so the above would tell


def _results() -> Results:
    """Losses and weights of a few steps, by the way of updating."""
    os.environ["TRITON_INTERPRET"] = "1"  # before the kernel is imported
    return {kind: _trained(kind) for kind in ("early", "late", "stale", "plain")}


def _trained(kind: str) -> tuple[list[float], dict[str, list[float]]]:
    training = with_sharding(TRAINING, "full", reshard=False)
    training = replace(training, precision="bf16", max_grad_norm=1.0, steps=4)
    task = replace(the_toy(), model=Deep)
    model = sharded(task, training)
    assert len(groups(model)) > FIRST_GROUPS
    step = a_step(training, task, model, torch.optim.AdamW)
    early = step.weights._early
    assert early
    if kind == "late":
        step.weights._early = None
    elif kind == "stale":
        early._masters = set()
    if kind != "plain":
        step = replace(step, update=FusedAdamW(step.update._optimizer, step.weights))
    batches = the_batches(training, task)
    losses = [
        step.run(batches.of_step(index * training.global_batch_size), batches.per_step, no_wishes())
        .read()
        .loss
        for index in range(training.steps or 0)
    ]
    return losses, full(model)
