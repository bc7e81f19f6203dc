"""Products in 8 bits, emulated on the CPU. Real trainings."""

from dataclasses import replace
from pathlib import Path

import pytest
from torch import nn

from kopeck_trainer.config import TrainConfig, TrainingConfig
from kopeck_trainer.errors import ConfigurationError
from kopeck_trainer.exit_codes import COMPLETED, CONFIGURATION
from kopeck_trainer.float8 import convertible, refuse_old
from kopeck_trainer.task import TrainingTask
from tests.unit.trainer.builders import wide
from tests.unit.trainer.on_ranks import on_ranks
from tests.unit.trainer.rank_process import start_rank
from tests.unit.trainer.small_trainings import TRAINING, losses

FLOAT8 = replace(TRAINING, precision="fp8", micro_batch_size=3, steps=20)


def the_wide() -> TrainingTask:
    return wide.build(TrainConfig())


def wide_losses(training: TrainingConfig, backend: str | None = None) -> list[float]:
    return losses(training, task_of=the_wide, backend=backend)


def test_the_loss_falls_as_in_bf16_at_every_world_size(tmp_path: Path) -> None:
    [in_bf16] = on_ranks(1, wide_losses, tmp_path, replace(FLOAT8, precision="bf16"))
    [alone] = on_ranks(1, wide_losses, tmp_path, FLOAT8)
    assert alone[-2] < alone[0] / 4
    assert alone != in_bf16
    assert alone == pytest.approx(in_bf16, rel=0.03)
    for found in on_ranks(2, wide_losses, tmp_path, FLOAT8, "aot_eager"):
        assert found == pytest.approx(alone, rel=2e-3)


def test_a_job_goes_on_from_fp8_in_bf16_and_back(tmp_path: Path) -> None:
    last_losses = []
    for attempt, precision in enumerate(["fp8", "bf16", "fp8"]):
        rank = start_rank(
            tmp_path,
            attempt=attempt,
            entrypoint="wide:build",
            steps=10 * (attempt + 1),
            globalBatchSize=12,
            precision=precision,
        )
        assert rank.exit_code() == COMPLETED, rank.output
        assert attempt == 0 or f"resumed after step {10 * attempt}" in rank.output
        last_losses.append(rank.report["loss"])
    assert last_losses[0] > last_losses[1] > last_losses[2]


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


def test_the_last_layer_of_a_model_without_blocks_is_its_head() -> None:
    model = nn.Sequential(nn.Linear(16, 32), nn.Linear(32, 32), nn.Linear(32, 16))
    assert convertible(model, [model]) == {model[0], model[1]}
