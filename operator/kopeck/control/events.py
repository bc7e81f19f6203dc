"""Kubernetes events about a job: one for each change that a user should see."""

import secrets
from collections.abc import Mapping
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
    job: JobView, after: TrainingJobStatus, vendor: Mapping[str, str], now: datetime
) -> list[dict[str, Any]]:
    """The events of going from the job's status to `after`.

    `vendor` is what the provider's file sets for NCCL, where `after` brings it.
    """
    wrong = first_wrong_loss(job.status.training, after.training)
    told = [_event(job, "Warning", "WrongLoss", wrong, now)] if wrong else []
    return [
        *_platform_events(job, after, now),
        *_setting_events(job, after, vendor, now),
        *told,
        *_request_events(job, after, now),
        *_phase_events(job, after, now),
    ]


def _platform_events(job: JobView, after: TrainingJobStatus, now: datetime) -> list[dict[str, Any]]:
    """What the pods of an attempt lack to reach each other at full speed, when that changes."""
    before, found = (
        next((each for each in status.conditions if each.type == "PlatformKnown"), None)
        for status in (job.status, after)
    )
    if found is None or found.reason == "Known" or (before and before.message == found.message):
        return []
    return [_event(job, "Warning", found.reason, found.message, now)]


def _setting_events(
    job: JobView, after: TrainingJobStatus, vendor: Mapping[str, str], now: datetime
) -> list[dict[str, Any]]:
    """Once for each revision: what the user's settings of NCCL cost."""
    if after.effective is None or not _is_first_sight(job, after):
        return []
    platform = after.effective.nccl.platform if after.effective.nccl else None
    return [
        _event(job, *_KIND_AND_REASON[each.harm], str(each), now)
        for each in nccl_warnings(job.spec, platform, vendor)
    ]


def _is_first_sight(job: JobView, after: TrainingJobStatus) -> bool:
    """Whether a revision's settings can be judged first: once its nodes were looked at, if so."""
    before, effective = job.status.effective, after.effective
    if effective and effective.nccl and before and before.nccl is None:
        return after.attempt == 0 or after.restart_reason == "NewRevision"
    is_new = before is None or effective is None or before.revision != effective.revision
    return is_new and not job.spec.workers.has_nvidia_gpus


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
