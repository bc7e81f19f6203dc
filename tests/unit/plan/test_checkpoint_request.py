"""A checkpoint that a user asks for: handed on once, answered once, whatever happens meanwhile."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest

from kopeck.api.names import ANNOTATION_CHECKPOINT_REQUEST
from kopeck.api.status import CheckpointRequest, Condition, Effective, TrainingJobStatus
from kopeck.plan.checkpoint_request import with_answer
from kopeck.plan.plan import plan
from kopeck.plan.pod_facts import PodFacts
from kopeck.plan.pods import Sidecar
from kopeck.plan.revision import revision_hash
from kopeck.plan.step import Step
from tests.builders import T0, a_job_view, a_report, ended, facts_of

SAVES = {"training": {"checkpoint": {"path": "/checkpoints"}}}


@dataclass
class RunningJob:
    """A job of two workers that run, pass after pass."""

    annotation: str | None = "before-upgrade"
    spec: dict[str, Any] = field(default_factory=lambda: SAVES)
    pods: Sequence[PodFacts] = field(default_factory=lambda: [facts_of(0), facts_of(1)])
    status: TrainingJobStatus = field(init=False)

    def __post_init__(self) -> None:
        revision = revision_hash(a_job_view(**self.spec).spec)
        running = Condition(
            type="Running", status="True", reason="Running", message="", last_transition_time=""
        )
        self.status = TrainingJobStatus(
            phase="Running",
            observed_generation=1,
            conditions=[running],
            effective=Effective(revision=revision, workers=2, populated=True),
        )

    @property
    def request(self) -> CheckpointRequest | None:
        return self.status.checkpoint_request

    def go_on(self) -> Step:
        """One pass: planned, written, and the annotations set."""
        asked = {} if self.annotation is None else {ANNOTATION_CHECKPOINT_REQUEST: self.annotation}
        written = self.status.model_dump(by_alias=True, exclude_none=True)
        job = a_job_view(written, annotations=asked, **self.spec)
        step = plan(job, self.pods, Sidecar("exporter:1"), T0)
        self.status = step.status
        attempt = step.status.attempt
        self.pods = [_annotated(pod, step) for pod in self.pods if pod.attempt == attempt]
        return step

    def answer(self, **report: Any) -> None:
        self.status = with_answer(self.status, report)


def _annotated(pod: PodFacts, step: Step) -> PodFacts:
    new = step.pod_annotations.get(pod.name, {})
    known = pod.checkpoint_request_annotation
    return replace(pod, checkpoint_request_annotation=new.get(ANNOTATION_CHECKPOINT_REQUEST, known))


def state(job: RunningJob) -> str | None:
    return job.request and job.request.state


def test_a_request_is_noted_first_then_handed_to_worker_0_alone_and_once() -> None:
    job = RunningJob()
    assert job.go_on().pod_annotations == {}
    assert job.request == CheckpointRequest(name="before-upgrade", state="Requested")
    handed = {job.pods[0].name: {ANNOTATION_CHECKPOINT_REQUEST: "before-upgrade"}}
    assert job.go_on().pod_annotations == handed
    assert job.go_on().pod_annotations == {}


def test_while_it_waits_the_job_is_looked_at_every_two_seconds() -> None:
    job = RunningJob()
    assert job.go_on().due_at == T0 + timedelta(seconds=2)
    job.answer(checkpointRequest="before-upgrade", checkpointStep=12)
    assert job.go_on().due_at is None


def test_the_answer_says_which_checkpoint_it_is_and_the_next_pass_asks_for_nothing() -> None:
    job = RunningJob()
    job.go_on()
    job.answer(checkpointRequest="before-upgrade", checkpointStep=12)
    saved = CheckpointRequest(name="before-upgrade", state="Saved", step=12)
    assert job.request == saved
    assert job.go_on().pod_annotations == {}
    assert job.request == saved


@pytest.mark.parametrize("report", [{}, {"checkpointRequest": "older"}, {"checkpointStep": 8}])
def test_another_answer_is_none(report: dict[str, Any]) -> None:
    job = RunningJob()
    job.go_on()
    job.answer(**report)
    assert state(job) == "Requested"


def test_another_name_asks_again() -> None:
    job = RunningJob()
    job.go_on()
    job.answer(checkpointRequest="before-upgrade", checkpointStep=12)
    job.annotation = "once-more"
    job.go_on()
    assert job.request == CheckpointRequest(name="once-more", state="Requested")
    [annotations] = job.go_on().pod_annotations.values()
    assert annotations == {ANNOTATION_CHECKPOINT_REQUEST: "once-more"}


def test_a_request_can_be_withdrawn_but_an_answer_stays() -> None:
    job = RunningJob()
    job.go_on()
    job.annotation = None
    job.go_on()
    assert job.request is None
    answered = RunningJob()
    answered.go_on()
    answered.answer(checkpointRequest="before-upgrade", checkpointStep=12)
    answered.annotation = None
    answered.go_on()
    assert state(answered) == "Saved"


def test_a_request_that_its_attempt_did_not_answer_goes_to_the_next_one() -> None:
    job = RunningJob()
    job.go_on()
    job.go_on()
    job.pods = [job.pods[0], facts_of(1, status=ended(137, finishedAt="2025-12-31T00:00:00Z"))]
    assert job.go_on().status.attempt == 1
    assert state(job) == "Requested"
    job.pods = [facts_of(0, 1), facts_of(1, 1)]
    assert list(job.go_on().pod_annotations) == [job.pods[0].name]


def test_the_last_word_of_a_dead_worker_0_may_be_the_answer() -> None:
    job = RunningJob()
    job.go_on()
    report = a_report(checkpointRequest="before-upgrade", checkpointStep=18)
    last_word = ended(137, message=report, finishedAt="2025-12-31T00:00:00Z")
    job.pods = [facts_of(0, status=last_word), facts_of(1)]
    assert job.go_on().status.attempt == 1
    assert job.request == CheckpointRequest(name="before-upgrade", state="Saved", step=18)


def test_a_job_that_completes_has_saved_its_last_step() -> None:
    job = RunningJob()
    job.go_on()
    job.pods = [facts_of(worker, status=ended(0, message=a_report())) for worker in (0, 1)]
    job.go_on()
    assert job.status.phase == "Complete"
    assert job.request == CheckpointRequest(name="before-upgrade", state="Saved", step=20)


def test_a_job_that_fails_for_good_says_that_nothing_was_saved() -> None:
    job = RunningJob()
    job.go_on()
    wrong = ended(78, finishedAt="2025-12-31T00:00:00Z")
    job.pods = [facts_of(0, status=wrong), facts_of(1)]
    job.go_on()
    assert job.status.phase == "Failed"
    assert state(job) == "Refused"


def test_a_job_that_is_over_saves_no_more() -> None:
    job = RunningJob(annotation=None)
    job.pods = [facts_of(worker, status=ended(0, message=a_report())) for worker in (0, 1)]
    job.go_on()
    job.annotation = "too-late"
    job.go_on()
    assert job.request
    assert job.request.message == (
        "the job is over; its last checkpoint is status.training.checkpointStep"
    )


@pytest.mark.parametrize("name", ["two words", "a" * 65, "a" * 5000, 'quote"', "ä", "a\nb"])
def test_what_is_no_name_is_refused_with_what_to_write(name: str) -> None:
    job = RunningJob(annotation=name)
    assert job.go_on().pod_annotations == job.go_on().pod_annotations == {}
    assert job.request
    assert job.request.state == "Refused"
    assert job.request.message == (
        "kopeck.dev/checkpoint-request is no name; use at most 64 letters, digits and . _ : -"
    )


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({}, "spec.training.checkpoint is not set; set it"),
        (
            SAVES | {"entrypoint": None, "command": ["train"]},
            "spec.command runs a program of your own; only an entrypoint can be asked to save",
        ),
    ],
)
def test_a_job_that_cannot_save_says_why(spec: dict[str, Any], said: str) -> None:
    job = RunningJob(spec=spec)
    job.go_on()
    assert job.request == CheckpointRequest(name="before-upgrade", state="Refused", message=said)
