from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import torch
from torch import nn

from kopeck_trainer.compilation.policy import Trial
from kopeck_trainer.compilation.record import Decision, Key, decision_key, recalled, remember
from kopeck_trainer.config import ActivationsConfig, TrainConfig, TrainingConfig

KEY = {"torch": "2.15.0", "ranks": 2}
DECISION = Decision(
    trials=(
        Trial(mode="default", compile_seconds=3.0, step_seconds=0.5),
        Trial(mode="off", compile_seconds=0.0, infeasible="it raised"),
    ),
    mode="default",
)


def test_trials_are_recalled_for_the_same_key_only(tmp_path: Path) -> None:
    remember(tmp_path / "new", KEY, DECISION)
    assert recalled(tmp_path / "new", KEY) == DECISION.trials
    assert recalled(tmp_path / "new", KEY | {"ranks": 4}) == ()


def test_a_record_of_another_form_says_nothing(tmp_path: Path) -> None:
    remember(tmp_path, KEY, DECISION)
    [file] = tmp_path.iterdir()
    for text in ('{"trials": [{"way": "default"}]}', "{", "[]"):
        file.write_text(text)
        assert recalled(tmp_path, KEY) == ()


def key_of(**training: Any) -> Key:
    usual = TrainingConfig(global_batch_size=8, micro_batch_size=2, steps=4)
    step = SimpleNamespace(model=nn.Linear(1, 1), device=torch.device("cpu"), ranks=1)
    return decision_key(TrainConfig(), replace(usual, **training), cast("Any", step), batch=())


def test_a_decision_holds_for_what_makes_steps_as_long() -> None:
    assert key_of() == key_of(steps=9, seed=7)
    for other in (
        {"precision": "fp32"},
        {"activations": ActivationsConfig(mode="full")},
        {"activations": ActivationsConfig(mode="budget", memory_budget=0.5)},
    ):
        assert key_of() != key_of(**other)
