"""A new attempt: counted in status before anything is deleted."""

from datetime import datetime

from kopeck.api.status import Condition, Effective, RestartReason, TrainingJobStatus
from kopeck.api.timestamps import format_timestamp
from kopeck.plan.figures import training_after_loss
from kopeck.plan.revision import revision_hash
from kopeck.plan.situation import Situation


def next_attempt(
    situation: Situation,
    reason: RestartReason,
    explanation: str,
    *,
    begins_at: datetime | None = None,
) -> TrainingJobStatus:
    """The status that asks for another set of pods, not before `begins_at`."""
    status, effective = situation.status, situation.effective
    begins = format_timestamp(begins_at or situation.now)
    restarts = status.restarts.model_copy(update={"total": status.restarts.total + 1})
    kept = training_after_loss(status.training, situation.current, situation.samples_per_step)
    decided = situation.deciding(
        phase="Restarting",
        attempt=status.attempt + 1,
        restarts=restarts,
        restart_reason=reason,
        retry_at=begins if begins_at else None,
        effective=Effective(
            revision=effective.revision, workers=effective.workers, created_at=begins
        ),
        training=kept,
    )
    return decided.saying("Running", "False", reason, explanation).status


def changed_by_user(situation: Situation) -> TrainingJobStatus | None:
    """The status of a new attempt if the user changed what runs or on how many workers."""
    before = situation.effective
    revision, workers = revision_hash(situation.spec), situation.spec.workers.replicas
    if (revision, workers) == (before.revision, before.workers):
        return None
    is_resize = revision == before.revision
    told = f"{workers} workers" if is_resize else f"revision {revision}"
    wanted = situation.deciding(
        effective=Effective(revision=revision, workers=workers),
        observed_generation=situation.job.generation,
        conditions=_without_platform(situation),
    )
    reason: RestartReason = "Resized" if is_resize else "NewRevision"
    return next_attempt(wanted, reason, f"starting again with {told}")


def _without_platform(situation: Situation) -> list[Condition]:
    """What was found of nodes with GPUs says nothing of a job that asks for none any more."""
    conditions = situation.status.conditions
    if situation.spec.workers.has_nvidia_gpus:
        return conditions
    return [each for each in conditions if each.type != "PlatformKnown"]
