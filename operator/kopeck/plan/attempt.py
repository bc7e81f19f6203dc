"""How an attempt stands, judged by its pods.

What happened is read from the trainer's container, not from the pod's phase, which stays Running
until the sidecar is gone. The first failure counts: peers die of the consequence.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, auto

from kopeck.api.status import Failure, RestartReason
from kopeck.api.timestamps import format_timestamp
from kopeck.plan.pod_facts import PodFacts

CONFIGURATION_EXIT_CODE = 78
_PEER_LOST_EXIT_CODE = 181
_CHECKPOINTED_EXIT_CODE = 143
# Codes of ranks that end because of another one, or of somebody's SIGTERM.
_CONSEQUENCES = (_PEER_LOST_EXIT_CODE, _CHECKPOINTED_EXIT_CODE)
# The kubelet publishes its own disruption condition only with the pod's terminal phase.
_EVIDENCE_WAIT = timedelta(seconds=5)
_REASONS_BY_EXIT_CODE = {
    CONFIGURATION_EXIT_CODE: "Configuration",
    180: "Rendezvous",
    _PEER_LOST_EXIT_CODE: "PeerLost",
    182: "Hang",
    183: "CompileMode",
    184: "NonfiniteLoss",
    _CHECKPOINTED_EXIT_CODE: "Terminated",
}


class AttemptState(Enum):
    """Where an attempt is."""

    STARTING = auto()
    RUNNING = auto()
    COMPLETE = auto()
    UNDECIDED = auto()
    """Something ended, and evidence may still come that says why."""
    FAILED = auto()
    LOST = auto()
    """Ended by no fault of the training: a pod was deleted, evicted, preempted."""


@dataclass(frozen=True)
class Verdict:
    """The state of an attempt, and what follows from it."""

    state: AttemptState
    failure: Failure | None = None
    lost_reason: RestartReason | None = None
    explanation: str = ""
    decided_at: datetime | None = None
    """For UNDECIDED: when the wait for evidence ends."""


def judge(pods: Sequence[PodFacts], workers: int, now: datetime) -> Verdict:
    """The verdict on the pods of one attempt, all of which have existed."""
    if len(pods) == workers and all(pod.has_completed for pod in pods):
        return Verdict(AttemptState.COMPLETE)
    if lost := _lost(pods, workers):
        return lost
    if failed := [pod for pod in pods if pod.has_failed]:
        return _judge_failed(failed, now)
    if len(pods) == workers and all(pod.trainer.runs or pod.has_completed for pod in pods):
        return Verdict(AttemptState.RUNNING)
    return Verdict(AttemptState.STARTING)


def _lost(pods: Sequence[PodFacts], workers: int) -> Verdict | None:
    for pod in pods:
        if pod.disruption and not pod.has_completed:
            said = f"worker {pod.worker} was disrupted ({pod.disruption})"
            return Verdict(AttemptState.LOST, lost_reason="Disrupted", explanation=said)
    for pod in pods:
        if pod.is_deleting and not pod.has_completed:
            said = f"the pod of worker {pod.worker} was deleted"
            return Verdict(AttemptState.LOST, lost_reason="PodLost", explanation=said)
    missing = sorted(set(range(workers)) - {pod.worker for pod in pods})
    if missing:
        said = f"the pod of worker {missing[0]} is gone"
        return Verdict(AttemptState.LOST, lost_reason="PodLost", explanation=said)
    return None


def _judge_failed(failed: Sequence[PodFacts], now: datetime) -> Verdict:
    first = min(failed, key=lambda pod: _order_of_failure(pod, now))
    decided_at = (first.trainer_end_seen_at or now) + _EVIDENCE_WAIT
    is_consequence = first.trainer.exit_code in _CONSEQUENCES
    if now < decided_at and (is_consequence or not first.is_terminal):
        return Verdict(AttemptState.UNDECIDED, decided_at=decided_at)
    return Verdict(AttemptState.FAILED, failure=_failure(first))


def _order_of_failure(pod: PodFacts, now: datetime) -> tuple[bool, datetime, int]:
    """Causes before consequences, then by time: finishedAt has whole seconds only."""
    is_consequence = pod.trainer.exit_code in _CONSEQUENCES
    return is_consequence, pod.trainer.finished_at or now, pod.worker


def _failure(pod: PodFacts) -> Failure:
    report = pod.final_report
    first = report.get("firstFailure") or {}
    exit_code = pod.trainer.exit_code
    finished_at = pod.trainer.finished_at
    return Failure(
        attempt=pod.attempt,
        worker=pod.worker,
        rank=first.get("rank"),
        exit_code=first.get("exitCode", exit_code),
        signal=first.get("signal"),
        reason=_reason(pod, first.get("signal")),
        message=_message(pod, report),
        finished_at=format_timestamp(finished_at) if finished_at else None,
    )


def _reason(pod: PodFacts, signal: str | None) -> str:
    if pod.trainer.reason == "OOMKilled":
        return "OOMKilled"
    if pod.trainer.exit_code is None:
        return (pod.refusal or "PodFailed").split(":")[0]
    if signal:
        return "Signal"
    return _REASONS_BY_EXIT_CODE.get(pod.trainer.exit_code, "ExitCode")


def _message(pod: PodFacts, report: dict[str, object]) -> str:
    if said := report.get("message"):
        return str(said)
    if pod.trainer.exit_code is None:
        return f"worker {pod.worker}: {pod.refusal or 'its pod failed'}"
    return f"worker {pod.worker} ended with exit code {pod.trainer.exit_code}"
