"""What a user is told of a change, once."""

from kopeck.api.status import CheckpointRequest, Condition, TrainingJobStatus, TrainingStatus
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
