"""The short training that measures a point."""

from typing import Any

import pytest

from kopeck.api.trainingjob import parse_spec
from kopeck.plan.revision import trainer_config
from kopeck.tuning.points import Point
from kopeck.tuning.trial import UNMEASURED_STEPS, trial_of
from tests.builders import a_job
from tests.unit.tuning.builders import a_point


def trial(point: Point | None = None, **training: Any) -> dict[str, Any]:
    """What the trainer reads."""
    basis = {"steps": 1000, "globalBatchSize": 16, "microBatchSize": 4} | training
    spec = parse_spec(a_job(training={k: v for k, v in basis.items() if v is not None})["spec"])
    point = point or a_point(2, 4)
    config: dict[str, Any] = trainer_config(trial_of(spec, point, 5))["training"]
    return config


def test_it_trains_the_jobs_global_batch_by_the_points_micro_batch() -> None:
    told = trial(a_point(8, 1), maxGradNorm=1.0)
    assert (told["globalBatchSize"], told["microBatchSize"]) == (16, 8)
    assert told["maxGradNorm"] == 1.0


def test_it_has_the_points_activations_whatever_the_job_says() -> None:
    own = {"mode": "budget", "memoryBudget": 0.25}
    assert trial(a_point(mode="full"), activations=own)["activations"] == {"mode": "full"}
    budget = a_point(mode="budget", memory_budget=0.5)
    assert trial(budget)["activations"] == {"mode": "budget", "memoryBudget": 0.5}
    assert "onRecompile" not in trial(budget)["compile"]  # the trainer's default goes with the mode


@pytest.mark.parametrize("length", [{"steps": 7}, {"steps": None, "samples": 1600}])
def test_it_is_as_long_as_asked_whatever_the_job_says(length: dict[str, Any]) -> None:
    told = trial(**length)
    assert told["steps"] == UNMEASURED_STEPS + 5
    assert "samples" not in told


def test_it_writes_nothing_to_the_users_folders() -> None:
    told = trial(
        checkpoint={"path": "/kept", "everySteps": 1},
        compile={"cache": "/kept"},
        profile={"everySeconds": 60, "keep": "/kept"},
    )
    assert "/kept" not in str(told)
    assert "checkpoint" not in told


def test_no_trace_window_is_in_what_is_measured() -> None:
    for profile in (None, {"everySeconds": 60}):
        assert trial(profile=profile)["profile"]["everySeconds"] == 0


@pytest.mark.parametrize(
    ("mode", "tried"), [("auto", "default"), ("off", "off"), ("max-autotune", "max-autotune")]
)
def test_no_modes_are_tried_but_the_one_that_was_asked_for(mode: str, tried: str) -> None:
    told = trial(compile={"mode": mode, "onRecompile": "allow"})["compile"]
    assert (told["mode"], told["onRecompile"]) == (tried, "allow")
