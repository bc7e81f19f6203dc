from pathlib import Path
from typing import Any

import pytest

from kopeck_trainer.config import (
    ActivationsConfig,
    CheckpointConfig,
    CompileConfig,
    DataConfig,
    ProfileConfig,
    ShardingConfig,
    TrainingConfig,
    parse_config,
    read_config,
)
from kopeck_trainer.errors import ConfigurationError


def a_config(**training: Any) -> dict[str, Any]:
    needed = {"steps": 10, "globalBatchSize": 16, "microBatchSize": 4}
    return {"entrypoint": "task:build", "training": needed | training}


def refusal_of(content: object) -> str:
    with pytest.raises(ConfigurationError) as refusal:
        parse_config(content)
    return str(refusal.value)


def test_unset_fields_have_the_documented_defaults() -> None:
    assert parse_config(a_config()).training == TrainingConfig(
        global_batch_size=16,
        micro_batch_size=4,
        steps=10,
        samples=None,
        precision="bf16",
        seed=0,
        max_grad_norm=None,
        fails_on_nonfinite_loss=False,
        compile=CompileConfig(
            mode="auto",
            on_recompile="eager",
            fails_on_graph_break=False,
            cache=None,
            numerics_check=True,
        ),
        data=DataConfig(pad_to=(), drop_last=False, workers=0),
        sharding=ShardingConfig(strategy="auto", reshard_after_forward=None),
        activations=ActivationsConfig(mode="none"),
        checkpoint=None,
        profile=ProfileConfig(every_seconds=600, steps=2, keep=None),
    )


def test_every_field_is_read() -> None:
    training = parse_config(
        a_config(
            steps=None,
            samples=160,
            precision="fp32",
            seed=7,
            maxGradNorm=1,
            onNonfiniteLoss="fail",
            compile={
                "mode": "reduce-overhead",
                "onRecompile": "fail",
                "onGraphBreak": "fail",
                "cache": "/cache",
                "numericsCheck": False,
            },
            data={"padTo": [256, 128], "dropLast": True, "workers": 4},
            sharding={
                "strategy": "hybrid",
                "reshardAfterForward": False,
                "cpuOffload": False,
            },
            activations={"mode": "budget", "memoryBudget": 0.5},
            checkpoint={
                "path": "/checkpoints",
                "everySteps": 20,
                "everySeconds": 600,
                "keep": 3,
                "async": True,
            },
            profile={"everySeconds": 300, "steps": 3, "keep": "/traces"},
        )
    ).training
    assert training == TrainingConfig(
        global_batch_size=16,
        micro_batch_size=4,
        samples=160,
        precision="fp32",
        seed=7,
        max_grad_norm=1.0,
        fails_on_nonfinite_loss=True,
        compile=CompileConfig(
            mode="reduce-overhead",
            on_recompile="fail",
            fails_on_graph_break=True,
            cache=Path("/cache"),
            numerics_check=False,
        ),
        data=DataConfig(pad_to=(128, 256), drop_last=True, workers=4),
        sharding=ShardingConfig(strategy="hybrid", reshard_after_forward=False),
        activations=ActivationsConfig(mode="budget", memory_budget=0.5),
        checkpoint=CheckpointConfig(
            path=Path("/checkpoints"),
            every_steps=20,
            every_seconds=600,
            keep=3,
            in_background=True,
        ),
        profile=ProfileConfig(every_seconds=300, steps=3, keep=Path("/traces")),
    )


def test_new_calls_are_compiled_where_eager_would_keep_more_than_the_budget() -> None:
    budget = {"mode": "budget", "memoryBudget": 0.5}

    def on_recompile(**training: Any) -> str | None:
        config = parse_config(a_config(**training)).training
        return config and config.compile.on_recompile

    assert on_recompile() == "eager"
    assert on_recompile(activations={"mode": "full"}) == "eager"
    assert on_recompile(activations=budget) == "allow"
    assert on_recompile(activations=budget, compile={"mode": "default"}) == "allow"
    assert on_recompile(activations=budget, compile={"onRecompile": "fail"}) == "fail"


def test_no_seconds_are_no_windows() -> None:
    training = parse_config(a_config(profile={"everySeconds": 0})).training
    assert training is not None
    assert training.profile.every_seconds is None


def test_a_program_of_ones_own_needs_no_training_settings() -> None:
    config = parse_config({"command": ["python3", "train.py"], "args": ["--fast"]})
    assert (config.command, config.args) == (("python3", "train.py"), ("--fast",))
    assert config.training is None


@pytest.mark.parametrize(
    ("training", "sentence"),
    [
        ({"globalBatchSize": None}, "spec.training.globalBatchSize: it is missing; write a value"),
        ({"microBatchSize": 0}, "spec.training.microBatchSize: 0 cannot be used; write 1 or more"),
        ({"steps": True}, "spec.training.steps: True cannot be used; write a whole number"),
        ({"precision": "fp4"}, "spec.training.precision: 'fp4' cannot be used; write bf16 or fp32"),
        ({"maxGradNorm": -1}, "spec.training.maxGradNorm: -1 cannot be used; write a number above"),
        (
            {"onNonfiniteLoss": "stop"},
            "spec.training.onNonfiniteLoss: 'stop' cannot be used; write report or fail",
        ),
        ({"compile": {"mode": "fast"}}, "spec.training.compile.mode: 'fast' cannot be used; write"),
        (
            {"compile": {"numericsCheck": 1}},
            "spec.training.compile.numericsCheck: 1 cannot be used",
        ),
        ({"data": {"padTo": [0]}}, "spec.training.data.padTo: [0] cannot be used; write a list of"),
        (
            {"data": {"dropLast": "no"}},
            "spec.training.data.dropLast: 'no' cannot be used; write true",
        ),
        (
            {"data": {"workers": -1}},
            "spec.training.data.workers: -1 cannot be used; write 0 or more",
        ),
        ({"checkpoint": {}}, "spec.training.checkpoint.path: it is missing; write a value"),
        (
            {"checkpoint": {"path": "/checkpoints", "async": "yes"}},
            "spec.training.checkpoint.async: 'yes' cannot be used; write true or false",
        ),
        (
            {"profile": {"everySeconds": -1}},
            "spec.training.profile.everySeconds: -1 cannot be used; write 60 or more, or 0 for no",
        ),
        (
            {"profile": {"steps": 0}},
            "spec.training.profile.steps: 0 cannot be used; write 1 or more",
        ),
        (
            {"profile": {"seconds": 9}},
            "spec.training.profile.seconds: this trainer does not know it; remove it",
        ),
        ({"samples": 160}, "spec.training.steps: exactly one of steps and samples is needed; "),
        ({"steps": None}, "spec.training.steps: exactly one of steps and samples is needed; "),
        ({"offload": {}}, "spec.training.offload: this trainer does not know it; remove it, or"),
        (
            {"sharding": {"reshardAfterForward": "no"}},
            "spec.training.sharding.reshardAfterForward: 'no' cannot be used; write true or false",
        ),
        (
            {"sharding": {"cpuOffload": True}},
            "spec.training.sharding.cpuOffload: every step would wait for weights and gradients to",
        ),
        (
            {"activations": {"mode": "offload"}},
            "spec.training.activations.mode: 'offload' cannot be used; write none or full or",
        ),
        (
            {"activations": {"mode": "budget", "memoryBudget": 2}},
            "spec.training.activations.memoryBudget: 2 cannot be used; write a number from 0 to 1",
        ),
        (
            {"activations": {"mode": "budget"}},
            "spec.training.activations.memoryBudget: mode budget needs one; write both or none of",
        ),
        (
            {"activations": {"mode": "full", "memoryBudget": 0}},
            "spec.training.activations.memoryBudget: it goes with mode budget alone, and the mode",
        ),
        (
            {"activations": {"mode": "budget", "memoryBudget": 1}, "compile": {"mode": "off"}},
            "spec.training.activations.mode: budget is the compiler's, and spec.training.compile.",
        ),
    ],
)
def test_a_field_that_cannot_work_is_named(training: dict[str, Any], sentence: str) -> None:
    assert refusal_of(a_config(**training)).startswith(sentence)


@pytest.mark.parametrize("content", [{}, a_config() | {"command": ["true"]}])
def test_exactly_one_of_entrypoint_and_command_is_needed(content: object) -> None:
    assert "exactly one of entrypoint and command" in refusal_of(content)


def test_an_entrypoint_needs_training_settings() -> None:
    assert refusal_of({"entrypoint": "task:build"}).startswith("spec.training: ")


@pytest.mark.parametrize("text", ["", "{", "[]"])
def test_a_file_that_is_no_configuration_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ConfigurationError):
        read_config(tmp_path / "config.json")
