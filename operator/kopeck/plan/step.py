"""What one pass wants: objects to be made, pods to be ended, the status that it decided on."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kopeck.api.status import TrainingJobStatus
from kopeck.plan.pod_facts import PodFacts


@dataclass(frozen=True)
class Step:
    """The outcome of `plan`. What `status` decides, the next pass acts on."""

    status: TrainingJobStatus
    service: dict[str, Any] | None = None
    config: dict[str, Any] | None = None
    nccl_config: dict[str, Any] | None = None
    """The ConfigMap that `status` names: while it is refused, status is not to be written."""
    pods: list[dict[str, Any]] = field(default_factory=list)
    old_attempts: list[int] = field(default_factory=list)
    """Attempts whose pods are to be deleted."""
    old_attempts_grace_seconds: int | None = None
    """None: as long as the pods' own grace period."""
    ended_pods: list[PodFacts] = field(default_factory=list)
    """Single pods to be deleted: those that run on after the job failed."""
    pod_annotations: dict[str, dict[str, str]] = field(default_factory=dict)
    """To be set, by the pod's name."""
    cannot_be_undone: bool = False
    """To be planned again from fresh reads before it is done."""
    due_at: datetime | None = None
    """When to look again though nothing happened; None: never."""
