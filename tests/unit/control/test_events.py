"""What a user is told of a change, once."""

from typing import Any

from kopeck.api.status import (
    CheckpointRequest,
    Condition,
    Effective,
    TrainingJobStatus,
    TrainingStatus,
)
from kopeck.control.events import transition_events
from tests.builders import T0, a_job_view


def told(before: TrainingJobStatus, after: TrainingJobStatus) -> list[tuple[str, str]]:
    job = a_job_view(before.model_dump(by_alias=True, exclude_none=True))
    return [(each["type"], each["reason"]) for each in transition_events(job, after, T0)]


def running(**training: int) -> TrainingJobStatus:
    condition = Condition(
        type="Running", status="True", reason="Running", message="all run", last_transition_time=""
    )
    figures = TrainingStatus.model_validate(training, by_name=True)
    return TrainingJobStatus(phase="Running", conditions=[condition], training=figures)


def test_a_new_phase_is_told() -> None:
    assert told(TrainingJobStatus(phase="Starting"), running()) == [("Normal", "Running")]


def test_new_figures_are_no_news() -> None:
    assert told(running(step=3), running(step=4)) == []


def test_what_became_of_a_request_for_a_checkpoint_is_told_once() -> None:
    waits, saved, refused = (
        running().model_copy(
            update={"checkpoint_request": CheckpointRequest(name="now", state=state)}
        )
        for state in ("Requested", "Saved", "Refused")
    )
    assert told(running(), waits) == []
    assert told(waits, saved) == [("Normal", "CheckpointSaved")]
    assert told(saved, saved) == []
    assert told(running(), refused) == [("Warning", "CheckpointRefused")]


def test_the_first_wrong_loss_is_told_and_no_later_one() -> None:
    diverged = running(step=4, nonfinite_losses=1)
    assert told(running(step=3), diverged) == [("Warning", "WrongLoss")]
    assert told(diverged, running(step=5, nonfinite_losses=2)) == []


def accepted(revision: str = "r1") -> TrainingJobStatus:
    return TrainingJobStatus(effective=Effective(revision=revision, workers=2))


def told_of_settings(
    before: TrainingJobStatus, after: TrainingJobStatus, **spec: Any
) -> list[tuple[str, str]]:
    job = a_job_view(before.model_dump(by_alias=True, exclude_none=True), **spec)
    return [(each["reason"], each["message"]) for each in transition_events(job, after, T0)]


def test_what_settings_cost_is_told_once_for_each_revision() -> None:
    spec = {"workers": {"gpusPerWorker": 8}, "nccl": {"env": {"NCCL_P2P_DISABLE": "1"}}}
    for before in (TrainingJobStatus(), accepted("r0")):
        [(reason, message)] = told_of_settings(before, accepted(), **spec)
        assert reason == "CostlySetting"
        assert message.startswith("NCCL_P2P_DISABLE=1: ")
    assert told_of_settings(accepted(), accepted(), **spec) == []
    assert told_of_settings(TrainingJobStatus(), TrainingJobStatus(), **spec) == []


def test_settings_that_cost_nothing_are_no_news() -> None:
    spec = {"workers": {"gpusPerWorker": 8}, "nccl": {"env": {"NCCL_DEBUG": "INFO"}}}
    assert told_of_settings(TrainingJobStatus(), accepted(), **spec) == []
