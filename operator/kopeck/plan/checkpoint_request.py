"""A checkpoint of a running job, asked for by an annotation of the job.

It is noted in status first and then handed to the pod of worker 0, whose rank 0 wishes for all
ranks. The same name twice is one request; one that is not answered outlives its attempt.
"""

import re
from collections.abc import Mapping
from typing import Any

from kopeck.api.names import ANNOTATION_CHECKPOINT_REQUEST, CHECKPOINT_REQUEST_PATTERN
from kopeck.api.status import CheckpointRequest, TrainingJobStatus
from kopeck.plan.reports import trusted
from kopeck.plan.situation import Situation

_LONGEST_VALUE = 253  # of what is repeated in status; a name that is good is shorter


def with_request(situation: Situation) -> Situation:
    """The situation with what the job's annotation asks for, as far as status has it not yet."""
    asked, known = situation.job.checkpoint_request, situation.status.checkpoint_request
    if asked is None:
        withdrawn = known is not None and known.state == "Requested"
        return situation.deciding(checkpoint_request=None) if withdrawn else situation
    if known and known.name == asked[:_LONGEST_VALUE]:
        return situation
    why_not = _refusal(situation, asked)
    request = CheckpointRequest(
        name=asked[:_LONGEST_VALUE], state="Refused" if why_not else "Requested", message=why_not
    )
    return situation.deciding(checkpoint_request=request)


def with_answers(situation: Situation) -> Situation:
    """The situation with what the pods that have ended answered."""
    status = situation.status
    for pod in situation.current:
        status = with_answer(status, pod.final_report)
    return situation.deciding(checkpoint_request=status.checkpoint_request)


def with_answer(status: TrainingJobStatus, report: Mapping[str, Any]) -> TrainingJobStatus:
    """The status with a worker's answer to the request that waits, if the report has it."""
    request, report = status.checkpoint_request, trusted(report)
    if request is None or request.state != "Requested":
        return status
    if report.get("checkpointRequest") != request.name:
        return status
    saved = {"state": "Saved", "step": report.get("checkpointStep")}
    return status.model_copy(update={"checkpoint_request": request.model_copy(update=saved)})


def awaits_answer(status: TrainingJobStatus) -> bool:
    return status.checkpoint_request is not None and status.checkpoint_request.state == "Requested"


def annotations_to_set(situation: Situation) -> dict[str, dict[str, str]]:
    """By pod: the request that status had before this pass, for a worker 0 that has it not."""
    request = situation.status.checkpoint_request
    if request is None or request.state != "Requested":
        return {}
    if request != situation.job.status.checkpoint_request:
        return {}
    return {
        pod.name: {ANNOTATION_CHECKPOINT_REQUEST: request.name}
        for pod in situation.current
        if pod.worker == 0 and pod.checkpoint_request_annotation != request.name
    }


def with_last_word(situation: Situation, kind: str) -> Situation:
    """The situation of a job that is over: a complete one has saved its last step."""
    request = situation.status.checkpoint_request
    if request is None or request.state != "Requested":
        return situation
    training = situation.status.training
    if kind == "Complete":
        said = {"state": "Saved", "step": training.checkpoint_step if training else None}
    else:
        said = {"state": "Refused", "message": "the job failed before it could save"}
    return situation.deciding(checkpoint_request=request.model_copy(update=said))


def _refusal(situation: Situation, name: str) -> str | None:
    if situation.job.is_finished:
        return "the job is over; its last checkpoint is status.training.checkpointStep"
    if not re.fullmatch(CHECKPOINT_REQUEST_PATTERN, name):
        wrong = f"{ANNOTATION_CHECKPOINT_REQUEST} is no name"
        return f"{wrong}; use at most 64 letters, digits and . _ : -"
    if situation.spec.entrypoint is None:
        return "spec.command runs a program of your own; only an entrypoint can be asked to save"
    if situation.spec.training is None or situation.spec.training.checkpoint is None:
        return "spec.training.checkpoint is not set; set it"
    return None
