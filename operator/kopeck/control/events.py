"""Kubernetes events about a job: one for each change that a user should see."""

import secrets
from datetime import datetime
from typing import Any

from kopeck.api.names import API_VERSION, KIND
from kopeck.api.status import TrainingJobStatus
from kopeck.api.timestamps import format_timestamp
from kopeck.plan.job_view import JobView
from kopeck.plan.nccl_settings import nccl_warnings
from kopeck.plan.wrong_losses import first_wrong_loss
from kopeck.topology.harmful_settings import Harm


def transition_events(
    job: JobView, after: TrainingJobStatus, now: datetime
) -> list[dict[str, Any]]:
    """The events of going from the job's status to `after`."""
    wrong = first_wrong_loss(job.status.training, after.training)
    told = [_event(job, "Warning", "WrongLoss", wrong, now)] if wrong else []
    return [
        *_setting_events(job, after, now),
        *told,
        *_request_events(job, after, now),
        *_phase_events(job, after, now),
    ]


def _setting_events(job: JobView, after: TrainingJobStatus, now: datetime) -> list[dict[str, Any]]:
    """Once for each revision: what the user's settings of NCCL cost."""
    before = job.status.effective
    if after.effective is None or (before and before.revision == after.effective.revision):
        return []
    return [
        _event(job, *_KIND_AND_REASON[each.harm], str(each), now)
        for each in nccl_warnings(job.spec)
    ]


_KIND_AND_REASON = {
    Harm.DATA: ("Warning", "UnsafeSetting"),
    Harm.COST: ("Warning", "CostlySetting"),
    Harm.NEEDLESS: ("Normal", "NeedlessSetting"),
}


def _request_events(job: JobView, after: TrainingJobStatus, now: datetime) -> list[dict[str, Any]]:
    request = after.checkpoint_request
    if request is None or request == job.status.checkpoint_request:
        return []
    if request.state == "Saved":
        said = f"checkpoint {request.name} is saved, step {request.step}"
        return [_event(job, "Normal", "CheckpointSaved", said, now)]
    if request.state == "Refused":
        said = f"no checkpoint {request.name}: {request.message}"
        return [_event(job, "Warning", "CheckpointRefused", said, now)]
    return []


def _phase_events(job: JobView, after: TrainingJobStatus, now: datetime) -> list[dict[str, Any]]:
    before = job.status
    if after.phase == before.phase or not after.conditions:
        return []
    condition = next(each for each in after.conditions if each.type == "Running")
    trouble = after.phase == "Failed" or after.restart_reason in ("Failure", "Disrupted")
    is_warning = trouble and after.phase in ("Failed", "Restarting")
    reason = condition.reason if after.phase in ("Restarting", "Failed") else after.phase
    return [_event(job, "Warning" if is_warning else "Normal", reason, condition.message, now)]


def _event(job: JobView, kind: str, reason: str, message: str, now: datetime) -> dict[str, Any]:
    key = job.key
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{key.name}.{secrets.token_hex(8)}", "namespace": key.namespace},
        "involvedObject": {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "namespace": key.namespace,
            "name": key.name,
            "uid": key.uid,
        },
        "type": kind,
        "reason": reason,
        "message": message[:1024],
        "firstTimestamp": format_timestamp(now),
        "lastTimestamp": format_timestamp(now),
        "count": 1,
        "source": {"component": "kopeck"},
    }
