"""Why an attempt does not run yet, and when it has waited long enough."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from kopeck.api.run_policy import RunPolicySpec
from kopeck.api.status import Effective
from kopeck.api.timestamps import parse_timestamp
from kopeck.plan.pod_facts import PodFacts

_IMAGE_REASONS = (
    "ErrImagePull",
    "ImagePullBackOff",
    "ErrImageNeverPull",
    "InvalidImageName",
    "ImageInspectError",
    "RegistryUnavailable",
)


def why_it_waits(pods: Sequence[PodFacts], workers: int) -> tuple[str, str]:
    """Reason and sentence of the most telling wait among the pods."""
    waiting = sorted(
        (pod for pod in pods if not pod.trainer.runs and not pod.has_completed), key=_by_worker
    )
    for pod in waiting:
        if pod.trainer.reason in _IMAGE_REASONS:
            said = f"worker {pod.worker}: {pod.trainer.reason}: {pod.trainer.message or ''}"
            return "ImageNotPulled", f"{said.rstrip(': ')}; check spec.image and its pull secrets"
    for pod in waiting:
        if pod.unschedulable:
            return "Unschedulable", f"worker {pod.worker} has no node: {pod.unschedulable}"
    for pod in waiting:
        if pod.trainer.reason not in (None, "PodInitializing", "ContainerCreating"):
            said = f"worker {pod.worker}: {pod.trainer.reason}: {pod.trainer.message or ''}"
            return "ContainerNotStarted", said.rstrip(": ")
    return "Starting", f"{len(pods) - len(waiting)} of {workers} workers run"


def deadline(effective: Effective, policy: RunPolicySpec) -> datetime | None:
    """When an attempt must run; None before its pods were asked for."""
    if effective.created_at is None:
        return None
    return parse_timestamp(effective.created_at) + timedelta(
        seconds=policy.startup_deadline_seconds
    )


def _by_worker(pod: PodFacts) -> int:
    return pod.worker
