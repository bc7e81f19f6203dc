"""What is remembered of a pod: under a kilobyte, never the decoded object."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from kopeck.api.job_key import JobKey
from kopeck.api.names import (
    ANNOTATION_CHECKPOINT_REQUEST,
    ANNOTATION_HOURLY_RATE,
    LABEL_ATTEMPT,
    LABEL_JOB,
    LABEL_JOB_UID,
    LABEL_WORKER,
    TRAINER_CONTAINER,
)
from kopeck.api.timestamps import parse_timestamp
from kopeck.cost.share import effective_requests
from kopeck.plan.reports import trusted

_DISRUPTIONS = ("DisruptionTarget", "TerminationTarget")


@dataclass(frozen=True, slots=True)
class TrainerState:
    """The trainer's container; each field None until it is known."""

    started_at: datetime | None = None
    exit_code: int | None = None
    finished_at: datetime | None = None
    reason: str | None = None
    """Why it waits or ended, such as ErrImagePull, OOMKilled."""
    message: str | None = None
    """The runtime's sentence while it waits, the termination message after it ended."""

    @property
    def runs(self) -> bool:
        return self.started_at is not None and self.exit_code is None


@dataclass(frozen=True, slots=True)
class PodFacts:
    """A pod of a job."""

    uid: str
    name: str
    job: JobKey
    resource_version: str
    attempt: int
    worker: int
    phase: str
    node: str | None
    scheduled_at: datetime | None
    unschedulable: str | None
    """The scheduler's sentence."""
    is_deleting: bool
    disruption: str | None
    """Reason of a disruption condition: eviction, preemption, taint, shutdown."""
    refusal: str | None
    """Why the kubelet refused or ended the pod as a whole, such as Evicted: its sentence."""
    trainer: TrainerState
    ended_at: datetime | None
    """Latest end of all containers, once none runs any more."""
    requests: Mapping[str, Decimal]
    hourly_rate_annotation: str | None
    checkpoint_request_annotation: str | None
    trainer_end_seen_at: datetime | None = None
    """Our own clock: since when we know that the trainer ended."""

    @property
    def is_terminal(self) -> bool:
        return self.phase in ("Succeeded", "Failed")

    @property
    def has_failed(self) -> bool:
        return self.trainer.exit_code not in (None, 0) or self.phase == "Failed"

    @property
    def has_completed(self) -> bool:
        return self.trainer.exit_code == 0

    @property
    def final_report(self) -> dict[str, Any]:
        """The launcher's termination message; empty if there is none that can be read."""
        if self.trainer.exit_code is None or not self.trainer.message:
            return {}
        try:
            return trusted(json.loads(self.trainer.message))
        except (ValueError, RecursionError):
            return {}


def pod_facts(pod: Mapping[str, Any]) -> PodFacts:
    """The facts of a decoded pod of ours."""
    metadata, status = pod["metadata"], pod.get("status", {})
    conditions = {each["type"]: each for each in status.get("conditions") or []}
    labels, annotations = metadata.get("labels", {}), metadata.get("annotations", {})
    return PodFacts(
        uid=metadata["uid"],
        name=metadata["name"],
        job=JobKey(metadata["namespace"], labels[LABEL_JOB], labels[LABEL_JOB_UID]),
        resource_version=metadata["resourceVersion"],
        attempt=int(labels[LABEL_ATTEMPT]),
        worker=int(labels[LABEL_WORKER]),
        phase=status.get("phase", "Pending"),
        node=pod["spec"].get("nodeName"),
        scheduled_at=_scheduled_at(pod, conditions),
        unschedulable=_unschedulable(conditions),
        is_deleting="deletionTimestamp" in metadata,
        disruption=_disruption(conditions),
        refusal=_refusal(status),
        trainer=_trainer_state(status),
        ended_at=_ended_at(status),
        requests=effective_requests(pod["spec"]),
        hourly_rate_annotation=annotations.get(ANNOTATION_HOURLY_RATE),
        checkpoint_request_annotation=annotations.get(ANNOTATION_CHECKPOINT_REQUEST),
    )


def _scheduled_at(
    pod: Mapping[str, Any], conditions: Mapping[str, Mapping[str, Any]]
) -> datetime | None:
    """When the pod got its node; its creation where the binder left no condition."""
    scheduled = conditions.get("PodScheduled", {})
    if scheduled.get("status") == "True" and scheduled.get("lastTransitionTime"):
        return parse_timestamp(scheduled["lastTransitionTime"])
    if pod["spec"].get("nodeName"):
        return parse_timestamp(pod["metadata"]["creationTimestamp"])
    return None


def _unschedulable(conditions: Mapping[str, Mapping[str, Any]]) -> str | None:
    scheduled = conditions.get("PodScheduled", {})
    if scheduled.get("status") == "False":
        return str(scheduled.get("message") or scheduled.get("reason"))
    return None


def _disruption(conditions: Mapping[str, Mapping[str, Any]]) -> str | None:
    for kind in _DISRUPTIONS:
        if conditions.get(kind, {}).get("status") == "True":
            return str(conditions[kind].get("reason") or kind)
    return None


def _refusal(status: Mapping[str, Any]) -> str | None:
    if status.get("phase") != "Failed" or not status.get("reason"):
        return None
    return f"{status['reason']}: {status.get('message', '')}".rstrip(": ")


def _trainer_state(status: Mapping[str, Any]) -> TrainerState:
    for container in status.get("containerStatuses") or []:
        if container["name"] == TRAINER_CONTAINER:
            state = _state(container.get("state") or {})
            return _waiting_init_state(status) if state.reason == "PodInitializing" else state
    return _waiting_init_state(status)


def _state(state: Mapping[str, Any]) -> TrainerState:
    if running := state.get("running"):
        return TrainerState(started_at=_time(running.get("startedAt")))
    if ended := state.get("terminated"):
        return TrainerState(
            started_at=_time(ended.get("startedAt")),
            exit_code=ended["exitCode"],
            finished_at=_time(ended.get("finishedAt")),
            reason=ended.get("reason"),
            message=ended.get("message"),
        )
    waiting = state.get("waiting") or {}
    return TrainerState(reason=waiting.get("reason"), message=waiting.get("message"))


def _waiting_init_state(status: Mapping[str, Any]) -> TrainerState:
    """Why the trainer waits while a container before it does, such as the sidecar's image."""
    for container in status.get("initContainerStatuses") or []:
        if "waiting" in (container.get("state") or {}):
            return _state(container["state"])
    return TrainerState()


def _ended_at(status: Mapping[str, Any]) -> datetime | None:
    statuses = [
        *(status.get("initContainerStatuses") or []),
        *(status.get("containerStatuses") or []),
    ]
    states = [each.get("state") or {} for each in statuses]
    if any("running" in state for state in states):
        return None
    ends = [
        _time(state["terminated"].get("finishedAt")) for state in states if "terminated" in state
    ]
    return max((end for end in ends if end is not None), default=None)


def _time(text: str | None) -> datetime | None:
    return parse_timestamp(text) if text else None
