"""The policy `auto` in real trainings, on models whose best mode is known by construction."""

import json
from typing import Any

import pytest

from kopeck_trainer.compilation.policy import TRIAL_STEPS
from kopeck_trainer.exit_codes import MODE_FAILED
from tests.unit.trainer.local_workers import LocalJob

LONG = 100 * 2 * TRIAL_STEPS
"""Steps for which a trial of eager is worth its time; the tests stop before."""


def auto(job: LocalJob, **fields: Any) -> dict[str, Any]:
    return {"mode": "auto", "cache": str(job.folder / "cache"), **fields}


def record(job: LocalJob) -> dict[str, Any]:
    [file] = (job.folder / "cache").glob("decision-*.json")
    content: dict[str, Any] = json.loads(file.read_text())
    return content


def stopped_after(job: LocalJob, step: int, config: dict[str, Any], attempt: int = 0) -> Any:
    """The termination message of a long training that is stopped once `step` is past."""
    [worker] = job.start(config, attempt=attempt)
    job.step_reached(step)
    worker.process.terminate()
    worker.exit_code()
    return worker.termination()


@pytest.mark.parametrize(("block", "best"), [("SlowCompiled", "off"), ("SlowEager", "default")])
def test_the_best_mode_is_kept_and_the_next_attempt_knows_it(
    job: LocalJob, block: str, best: str
) -> None:
    config = job.config(block=block, steps=LONG, compile=auto(job))
    end = stopped_after(job, 3 * TRIAL_STEPS, config)
    assert end["compileMode"] == best, job.workers[0].output
    assert end["compileDecision"].startswith(f"compile mode {best} for ")
    assert end["samples"] == end["step"] * 8
    known = record(job)
    trials = {each["mode"]: each["step_seconds"] for each in known["trials"]}
    assert trials.keys() == {"default", "off"}
    assert min(trials, key=lambda mode: trials[mode]) == best

    again = stopped_after(job, end["step"] + 1, config, attempt=1)
    assert again["compileMode"] == best
    assert "ms a step" not in job.workers[0].output  # nothing was tried again
    assert record(job) == known
    assert again["samples"] == again["step"] * 8


def test_a_short_run_keeps_the_first_mode_after_its_trial(job: LocalJob) -> None:
    assert job.run(job.config(block="SlowCompiled", steps=20, compile=auto(job))) == [0], (
        job.workers[0].output
    )
    end = job.workers[0].termination()
    assert (end["compileMode"], end["samples"]) == ("default", 20 * 8)
    assert [each["mode"] for each in record(job)["trials"]] == ["default"]


def test_a_mode_that_raises_is_recorded_and_survived(job: LocalJob) -> None:
    config = job.config(
        block="BrokenEager", steps=LONG, compile=auto(job, numericsCheck=False), checkpoint=None
    )
    assert job.run(config) == [MODE_FAILED], job.workers[0].output
    end = job.workers[0].termination()
    assert end["exitClass"] == "compile-mode"
    assert end["message"] == "a compile mode on trial failed: this kernel cannot run"
    [default, eager] = record(job)["trials"]
    assert default["step_seconds"] > 0
    assert eager["infeasible"] == "RuntimeError: this kernel cannot run"

    assert stopped_after(job, 3, config, attempt=1)["compileMode"] == "default"
    assert record(job)["mode"] == "default"
