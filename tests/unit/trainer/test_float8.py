"""Products in 8 bits, emulated on the CPU. Real trainings."""

import sys
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from kopeck_trainer.checkpoint.loading import load_newest, open_folder
from kopeck_trainer.checkpoint.manifest import Position
from kopeck_trainer.checkpoint.saving import Saver
from kopeck_trainer.checkpoint.state import TrainedState
from kopeck_trainer.config import ActivationsConfig, TrainConfig, TrainingConfig
from kopeck_trainer.errors import ConfigurationError
from kopeck_trainer.exit_codes import CONFIGURATION
from kopeck_trainer.float8 import convertible, is_wrapped, refuse_old, use_float8
from kopeck_trainer.task import TrainingTask
from tests.unit.trainer.builders import wide
from tests.unit.trainer.on_ranks import on_ranks
from tests.unit.trainer.rank_process import start_rank
from tests.unit.trainer.small_trainings import (
    TRAINING,
    a_step,
    full,
    losses,
    no_wishes,
    sharded,
    the_batches,
    with_sharding,
)

FLOAT8 = replace(TRAINING, precision="fp8", micro_batch_size=2, steps=8)


def the_wide() -> TrainingTask:
    return wide.build(TrainConfig())


def wide_losses(training: TrainingConfig, backend: str | None = None) -> list[float]:
    """Without the sum of all weights, most of which cancel: it tells nothing of small errors."""
    return losses(training, task_of=the_wide, backend=backend)[:-1]


def test_the_loss_falls_as_in_bf16_at_every_world_size(tmp_path: Path) -> None:
    [in_bf16] = on_ranks(1, wide_losses, tmp_path, replace(FLOAT8, precision="bf16"))
    [alone] = on_ranks(1, wide_losses, tmp_path, FLOAT8)
    assert alone[-1] < alone[0] / 2
    assert alone != in_bf16
    assert alone == pytest.approx(in_bf16, rel=0.03)
    recomputing = replace(FLOAT8, activations=ActivationsConfig(mode="selective"))
    for ranks, backend in ((2, "aot_eager"), (3, None)):  # which share all weights evenly, or some
        for found in on_ranks(ranks, wide_losses, tmp_path, recomputing, backend):
            assert found == pytest.approx(in_bf16, rel=0.03)


@dataclass(frozen=True)
class Attempt:
    """The weights that it found and left, and its loss."""

    found: dict[str, list[float]]
    left: dict[str, list[float]]
    loss: float


def go_on(folder: Path, attempt: int, training: TrainingConfig) -> Attempt:
    """Train for one step from the newest checkpoint, and leave another."""
    task = the_wide()
    model = sharded(task, training)
    step = a_step(training, task, model, torch.optim.AdamW)
    state = TrainedState(model=model, optimizer=step.update._optimizer)
    open_folder(folder, attempt)
    load_newest(folder, state)
    found = full(model)
    batches = the_batches(training, task)
    wishes = no_wishes()
    totals = step.run(batches.of_step(0), batches.per_step, wishes).read()
    content = state.read()
    assert {type(each.to_local()) for each in content["model"].values()} == {Tensor}
    Saver(folder=folder, attempt=attempt, keep=9).save(
        content, Position(step=attempt + 1, samples=12 * (attempt + 1))
    )
    return Attempt(found=found, left=full(model), loss=totals.loss)


def test_a_job_goes_on_from_fp8_in_bf16_and_back_at_any_world_size(tmp_path: Path) -> None:
    attempts = []
    for number, (ranks, precision) in enumerate([(2, "fp8"), (1, "bf16"), (3, "fp8"), (2, "bf16")]):
        training = replace(with_sharding(FLOAT8, "full"), precision=precision)
        (meeting := tmp_path / f"{number}").mkdir()
        attempts.append(
            on_ranks(ranks, go_on, meeting, tmp_path / "checkpoints", number, training)[0]
        )
    for before, after in pairwise(attempts):
        assert after.found == before.left
        assert after.loss < before.loss


def in_bf16() -> bool:
    wide_losses(replace(FLOAT8, precision="bf16"))
    return "torchao" in sys.modules


def test_other_precisions_need_no_torchao(tmp_path: Path) -> None:
    assert on_ranks(2, in_bf16, tmp_path) == [False, False]


def test_without_torchao_it_is_refused(tmp_path: Path) -> None:
    rank = start_rank(tmp_path, entrypoint="wide:build_without_torchao", steps=1, precision="fp8")
    assert rank.exit_code() == CONFIGURATION
    assert rank.reason.startswith("spec.training.precision: fp8 needs torchao (")
    assert rank.reason.endswith("); install kopeck[trainer], or write bf16")


def test_a_model_without_wide_layers_is_refused(tmp_path: Path) -> None:
    rank = start_rank(tmp_path, steps=1, precision="fp8")
    assert rank.exit_code() == CONFIGURATION
    assert rank.reason == (
        "spec.training.precision: the blocks of the model have no nn.Linear whose widths are "
        "multiples of 16; write bf16"
    )


def test_a_gpu_without_fp8_is_refused() -> None:
    with pytest.raises(ConfigurationError) as refused:
        refuse_old("NVIDIA A100-SXM4-80GB", (8, 0))
    assert str(refused.value) == (
        "spec.training.precision: NVIDIA A100-SXM4-80GB has no fp8; write bf16, or take GPUs of "
        "compute capability 8.9 or newer"
    )
    for capability in [(8, 9), (9, 0), (10, 0)]:
        refuse_old("newer", capability)


def test_wide_layers_of_the_blocks_are_chosen() -> None:
    model = wide.Wide()
    chosen = convertible(model, list(model.blocks))
    assert {name.split(".", 2)[-1] for name, each in model.named_modules() if each in chosen} == {
        "qkv",
        "out",
        "inner",
        "outer",
    }
    assert len(chosen) == 8


def tied_after_conversion() -> tuple[list[str], bool]:
    """The names of weights that are gathered in 8 bits, and whether tied ones are still one."""
    model = nn.Module()
    model.blocks = nn.ModuleList(nn.Linear(32, 32, bias=False) for _ in range(3))
    model.blocks[2].weight = model.blocks[1].weight
    use_float8(model, list(model.blocks), torch.device("cpu"), shards=2)
    gathered = [name for name, each in model.named_parameters() if is_wrapped(each)]
    return gathered, model.blocks[2].weight is model.blocks[1].weight


def test_tied_layers_stay_tied(tmp_path: Path) -> None:
    assert on_ranks(1, tied_after_conversion, tmp_path) == [(["blocks.0.weight"], True)]


def test_the_last_layer_of_a_model_without_blocks_is_its_head() -> None:
    model = nn.Sequential(nn.Linear(16, 32), nn.Linear(32, 32), nn.Linear(32, 16))
    assert convertible(model, [model]) == {model[0], model[1]}
