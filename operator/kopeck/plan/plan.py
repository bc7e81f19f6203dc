"""One pass over one job: what its status already says is acted on, what is seen decides the rest.

A crash at any line repeats work and loses no count: an attempt is counted in status first, its
pods follow in the next pass.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from kopeck.api.names import LABEL_JOB_UID
from kopeck.api.status import Effective, TrainingJobStatus
from kopeck.api.timestamps import format_timestamp, parse_timestamp
from kopeck.plan.attempt import AttemptState, judge
from kopeck.plan.checkpoint_request import (
    annotations_to_set,
    awaits_answer,
    with_answers,
    with_request,
)
from kopeck.plan.conditions import with_condition
from kopeck.plan.ending import completed, failed, timed_out
from kopeck.plan.job_view import JobView
from kopeck.plan.nccl_decision import Hidden, Surroundings, nccl_decision
from kopeck.plan.own_topology import TopologyFileError
from kopeck.plan.pod_facts import PodFacts
from kopeck.plan.pods import Attempt, Sidecar, worker_pods
from kopeck.plan.restart import changed_by_user, next_attempt
from kopeck.plan.revision import revision_hash
from kopeck.plan.shared_objects import headless_service, revision_config
from kopeck.plan.situation import Situation
from kopeck.plan.starting import deadline, why_it_waits
from kopeck.plan.step import Step

# Survivors of a failure cannot checkpoint without the dead: they only burn money.
_FAILURE_GRACE_SECONDS = 5
# How often worker 0 is asked whether the checkpoint that a user waits for is complete.
_ANSWER_POLL = timedelta(seconds=2)
# How soon nodes and files are looked at again that could not be read, or cannot be used.
_SURROUNDINGS_POLL = timedelta(seconds=10)


def plan(
    job: JobView,
    pods: Sequence[PodFacts],
    sidecar: Sidecar,
    now: datetime,
    surroundings: Surroundings | Hidden | None = None,
) -> Step:
    """The step of one pass. Raises SpecError where the spec cannot be run.

    `surroundings` are there where `awaits_decision` asks for them.
    """
    if job.status.effective is None:
        return Step(_accepted(job, now))
    current = sorted(
        (pod for pod in pods if pod.attempt == job.status.attempt), key=lambda pod: pod.worker
    )
    situation = Situation(job, job.status, current, now).deciding(
        replicas=len(current), ready_replicas=sum(pod.trainer.runs for pod in current)
    )
    situation = with_answers(with_request(situation))
    if job.is_finished:
        return _after_the_end(situation)
    if job.generation > job.status.observed_generation:
        if changed := changed_by_user(situation):
            return Step(changed, cannot_be_undone=True)
        situation = situation.deciding(observed_generation=job.generation)
    if old := [pod for pod in pods if pod.attempt < job.status.attempt]:
        return _end_old_attempts(situation, old)
    if not situation.effective.populated:
        return _populate(situation, sidecar, surroundings)
    return _follow(situation)


def _accepted(job: JobView, now: datetime) -> TrainingJobStatus:
    """The first write, before any pod: what runs, and the selector that autoscalers need."""
    effective = Effective(
        revision=revision_hash(job.spec),
        workers=job.spec.workers.replicas,
        created_at=format_timestamp(now),
    )
    conditions = with_condition(
        job.status.conditions, "Running", "False", "Accepted", "its pods are being made", now
    )
    return job.status.model_copy(
        update={
            "phase": "Pending",
            "observed_generation": job.generation,
            "selector": f"{LABEL_JOB_UID}={job.key.uid}",
            "effective": effective,
            "conditions": conditions,
        }
    )


def _end_old_attempts(situation: Situation, old: Sequence[PodFacts]) -> Step:
    """Old pods go first, all of them: a new set beside them would pass quotas."""
    attempts = sorted({pod.attempt for pod in old if not pod.is_deleting})
    after_failure = situation.status.restart_reason == "Failure"
    return Step(
        situation.status,
        old_attempts=attempts,
        old_attempts_grace_seconds=_FAILURE_GRACE_SECONDS if after_failure else None,
        cannot_be_undone=bool(attempts),
    )


def _populate(
    situation: Situation, sidecar: Sidecar, surroundings: Surroundings | Hidden | None
) -> Step:
    """Make the pods that are missing, until all of them have existed."""
    status, effective = situation.status, situation.effective
    begins_at = parse_timestamp(status.retry_at) if status.retry_at else situation.now
    if begins_at > situation.now:
        return Step(status, due_at=begins_at)
    missing = sorted(set(range(effective.workers)) - {pod.worker for pod in situation.current})
    if not missing:
        populated = effective.model_copy(update={"populated": True})
        return _follow(situation.deciding(effective=populated, phase="Starting"))
    if late := timed_out(situation):
        return Step(late, cannot_be_undone=True)
    key, spec = situation.job.key, situation.spec
    if surroundings is not None:
        return _decide_nccl(situation, surroundings)
    attempt = Attempt(
        key,
        status.attempt,
        effective.revision,
        effective.workers,
        sidecar,
        effective.nccl,
    )
    return Step(
        status,
        service=headless_service(key),
        config=revision_config(key, spec, effective.revision),
        pods=worker_pods(attempt, spec, missing),
        due_at=deadline(effective, spec.run_policy),
    )


def _decide_nccl(situation: Situation, surroundings: Surroundings | Hidden) -> Step:
    """Written down before the first pod: no later node or restart changes a running attempt."""
    look_again_at = situation.now + _SURROUNDINGS_POLL
    if isinstance(surroundings, Hidden):
        waits = situation.saying("Running", "False", "Refused", surroundings.refusal)
        return Step(waits.status, due_at=look_again_at)
    try:
        decision = nccl_decision(situation.job, surroundings)
    except TopologyFileError as wrong:
        waits = situation.saying("Running", "False", "InvalidTopology", str(wrong))
        return Step(waits.status, due_at=look_again_at)
    effective = situation.effective.model_copy(update={"nccl": decision.effective})
    decided = situation.deciding(effective=effective).saying(
        "PlatformKnown",
        "True" if decision.is_platform_known else "False",
        decision.reason,
        decision.message,
    )
    return Step(decided.status, nccl_config=decision.config_map)


def _follow(situation: Situation) -> Step:
    """Judge the attempt that runs, and decide what becomes of the job."""
    effective = situation.effective
    verdict = judge(situation.current, effective.workers, situation.now)
    match verdict.state:
        case AttemptState.COMPLETE:
            return Step(completed(situation), cannot_be_undone=True)
        case AttemptState.FAILED if verdict.failure:
            return Step(failed(situation, verdict.failure), cannot_be_undone=True)
        case AttemptState.LOST if verdict.lost_reason:
            explanation = f"{verdict.explanation}; all workers start again"
            lost = next_attempt(situation, verdict.lost_reason, explanation)
            return Step(lost, cannot_be_undone=True)
        case AttemptState.RUNNING:
            return _running(situation)
        case AttemptState.UNDECIDED:
            return Step(situation.status, due_at=verdict.decided_at)
        case _:
            return _still_starting(situation)


def _running(situation: Situation) -> Step:
    since = situation.status.start_time or format_timestamp(situation.now)
    said = f"all {situation.effective.workers} workers run"
    decided = situation.deciding(phase="Running", start_time=since)
    running = decided.saying("Running", "True", "Running", said)
    answer_due_at = situation.now + _ANSWER_POLL if awaits_answer(running.status) else None
    return Step(running.status, pod_annotations=annotations_to_set(running), due_at=answer_due_at)


def _still_starting(situation: Situation) -> Step:
    """Some workers do not run yet, or one has completed before the others."""
    if late := timed_out(situation):
        return Step(late, cannot_be_undone=True)
    if situation.status.phase == "Running":
        return Step(situation.status)
    reason, said = why_it_waits(situation.current, situation.effective.workers)
    starting = situation.deciding(phase="Starting").saying("Running", "False", reason, said)
    return Step(starting.status, due_at=deadline(situation.effective, situation.spec.run_policy))


def _after_the_end(situation: Situation) -> Step:
    """A complete job's pods stay for their logs; what still runs of a failed one is ended."""
    if situation.status.phase == "Complete":
        return Step(situation.status)
    alive = [pod for pod in situation.current if not pod.is_terminal and not pod.is_deleting]
    return Step(situation.status, ended_pods=alive, cannot_be_undone=bool(alive))
