"""How a job ends: complete, failed, or not started in time."""

from kopeck.api.status import Failure, TrainingJobStatus
from kopeck.api.timestamps import format_timestamp
from kopeck.plan.checkpoint_request import with_last_word
from kopeck.plan.degraded_condition import with_degraded_condition
from kopeck.plan.failure_policy import is_final, retry_at
from kopeck.plan.figures import training_at_end
from kopeck.plan.restart import next_attempt
from kopeck.plan.situation import Situation
from kopeck.plan.starting import deadline, why_it_waits


def completed(situation: Situation) -> TrainingJobStatus:
    """The status of a job whose workers all ended with 0."""
    training = training_at_end(situation.status.training, situation.current, situation.now)
    known = training is not None and training.samples is not None
    told = f" after {training.samples:,} samples" if training and known else ""
    conditions = situation.status.conditions
    for pod in situation.current:
        conditions = with_degraded_condition(conditions, pod.final_report, situation.now)
    situation = situation.deciding(training=training, conditions=conditions)
    return ended(situation, "Complete", "Complete", f"training is complete{told}")


def failed(situation: Situation, failure: Failure) -> TrainingJobStatus:
    """The status after a failure: counted, then tried again or final."""
    restarts, policy = situation.status.restarts, situation.spec.run_policy
    counted = restarts.model_copy(update={"failures": restarts.failures + 1})
    final = is_final(failure, restarts, policy)
    situation = situation.deciding(last_failure=failure, restarts=counted)
    if final:
        used_up = counted.failures > policy.backoff_limit
        told = f"; spec.runPolicy.backoffLimit ({policy.backoff_limit}) is used up"
        message = failure.message + (told if used_up else "")
        return ended(situation, "Failed", failure.reason, message)
    begins_at = retry_at(counted.failures, policy, situation.now)
    message = f"{failure.message}; retry {counted.failures} of {policy.backoff_limit}"
    return next_attempt(situation, "Failure", message, begins_at=begins_at)


def timed_out(situation: Situation) -> TrainingJobStatus | None:
    """The status of a job that did not start in time; None while it still may."""
    policy = situation.spec.run_policy
    ends_at = deadline(situation.effective, policy)
    if ends_at is None or situation.now < ends_at or situation.status.phase == "Running":
        return None
    reason, said = _last_known_wait(situation)
    seconds = policy.startup_deadline_seconds
    message = f"{said}; not started within spec.runPolicy.startupDeadlineSeconds ({seconds})"
    return ended(situation, "Failed", reason, message)


def _last_known_wait(situation: Situation) -> tuple[str, str]:
    """Why pods wait; where there are none, what the API server said when they were refused."""
    if not situation.current:
        for condition in situation.status.conditions:
            if condition.type == "Running":
                return condition.reason, condition.message
    return why_it_waits(situation.current, situation.effective.workers)


def ended(situation: Situation, kind: str, reason: str, message: str) -> TrainingJobStatus:
    """The status of a job that is `kind`, Complete or Failed, for good."""
    situation = with_last_word(situation, kind)
    decided = situation.deciding(phase=kind, completion_time=format_timestamp(situation.now))
    return (
        decided.saying("Running", "False", kind, message)
        .saying(kind, "True", reason, message)
        .status
    )
