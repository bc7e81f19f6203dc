"""How an attempt is judged by what its pods say."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from kopeck.api.status import Failure
from kopeck.plan.attempt import AttemptState, Verdict, judge
from kopeck.plan.pod_facts import PodFacts
from tests.builders import a_report, after, ended, facts_of, waiting

NOW = after(hours=2)
EVIDENCE_WAIT = timedelta(seconds=5)
PEER_LOST, CHECKPOINTED = 181, 143
TERMINAL_LONG_AGO = {"trainer_end_seen_at": after(hours=1)}


def judged(*pods: PodFacts, workers: int = 2, now: datetime = NOW) -> Verdict:
    return judge(pods, workers, now)


def failure_of(*pods: PodFacts, **how: Any) -> Failure:
    verdict = judged(*pods, **how)
    assert verdict.state is AttemptState.FAILED
    assert verdict.failure is not None
    return verdict.failure


def failed(worker: int, exit_code: int, **trainer: Any) -> PodFacts:
    """A pod whose trainer failed so long ago that all evidence is in."""
    return facts_of(worker, status=ended(exit_code, **trainer), **TERMINAL_LONG_AGO)


def failed_just_now(worker: int, exit_code: int) -> PodFacts:
    """A pod whose trainer failed and whose sidecar has not ended yet."""
    status = ended(exit_code) | {"phase": "Running"}
    return facts_of(worker, status=status, trainer_end_seen_at=NOW)


def disrupted(worker: int, reason: str = "PreemptionByScheduler", **facts: Any) -> PodFacts:
    return facts_of(worker, disruption=reason, **facts)


def test_an_attempt_whose_trainers_all_run_is_running() -> None:
    assert judged(facts_of(0), facts_of(1)).state is AttemptState.RUNNING


def test_an_attempt_is_complete_once_every_worker_ended_with_0() -> None:
    completed = [facts_of(worker, status=ended(0)) for worker in (0, 1)]
    assert judged(*completed).state is AttemptState.COMPLETE


def test_a_trainer_has_completed_though_its_sidecar_still_runs() -> None:
    status = ended(0) | {"phase": "Running"}
    completed = [facts_of(worker, status=status) for worker in (0, 1)]
    assert judged(*completed).state is AttemptState.COMPLETE


def test_one_worker_that_completed_before_the_others_changes_nothing() -> None:
    pods = facts_of(0, status=ended(0)), facts_of(1)
    assert judged(*pods).state is AttemptState.RUNNING


def test_half_an_attempt_is_not_complete() -> None:
    half = facts_of(0, status=ended(0))
    assert judged(half).state is AttemptState.LOST


def test_an_attempt_starts_until_all_trainers_run() -> None:
    pods = facts_of(0), facts_of(1, status=waiting("ContainerCreating"))
    assert judged(*pods).state is AttemptState.STARTING


def test_the_earliest_end_is_the_cause() -> None:
    later = failed(0, 1, finishedAt="2026-01-01T01:00:02Z")
    earlier = failed(1, 139, finishedAt="2026-01-01T01:00:01Z")
    failure = failure_of(later, earlier)
    assert (failure.worker, failure.exit_code) == (1, 139)
    assert failure.finished_at == "2026-01-01T01:00:01Z"


def test_of_ends_within_the_same_second_the_lowest_worker_counts() -> None:
    assert failure_of(failed(1, 3), failed(0, 2)).worker == 0


@pytest.mark.parametrize("consequence", [PEER_LOST, CHECKPOINTED])
@pytest.mark.parametrize("ended_at", ["2026-01-01T00:59:59Z", "2026-01-01T01:00:00Z"])
def test_a_consequence_does_not_hide_its_cause_though_it_ended_earlier(
    consequence: int, ended_at: str
) -> None:
    peer = failed(0, consequence, finishedAt=ended_at)
    cause = failed(1, 137, finishedAt="2026-01-01T01:00:00Z")
    failure = failure_of(peer, cause)
    assert (failure.worker, failure.exit_code) == (1, 137)


@pytest.mark.parametrize(
    ("exit_code", "reason"),
    [
        (1, "ExitCode"),
        (78, "Configuration"),
        (180, "Rendezvous"),
        (PEER_LOST, "PeerLost"),
        (182, "Hang"),
        (183, "CompileMode"),
        (184, "NonfiniteLoss"),
        (CHECKPOINTED, "Terminated"),
    ],
)
def test_a_failure_has_a_word_for_its_exit_code(exit_code: int, reason: str) -> None:
    assert failure_of(failed(0, exit_code), facts_of(1)).reason == reason


def test_the_rank_that_failed_first_is_in_the_termination_message() -> None:
    report = a_report(
        firstFailure={"rank": 5, "exitCode": 139, "signal": "SIGSEGV"},
        message="rank 5 was ended by SIGSEGV",
    )
    failure = failure_of(failed(0, 139, message=report), facts_of(1))
    assert (failure.rank, failure.exit_code, failure.signal) == (5, 139, "SIGSEGV")
    assert (failure.reason, failure.message) == ("Signal", "rank 5 was ended by SIGSEGV")


def test_an_end_without_a_message_is_told_by_its_exit_code() -> None:
    assert failure_of(failed(1, 3), facts_of(0)).message == "worker 1 ended with exit code 3"


def test_a_container_that_used_up_its_memory_is_told_apart_from_any_other_137() -> None:
    assert failure_of(failed(0, 137, reason="OOMKilled"), facts_of(1)).reason == "OOMKilled"


@pytest.mark.parametrize(
    ("refusal", "reason", "message"),
    [
        (
            "UnexpectedAdmissionError: no GPUs",
            "UnexpectedAdmissionError",
            "worker 1: UnexpectedAdmissionError: no GPUs",
        ),
        ("Evicted", "Evicted", "worker 1: Evicted"),
        (None, "PodFailed", "worker 1: its pod failed"),
    ],
)
def test_a_pod_that_the_kubelet_ended_without_a_container_is_a_failure_in_its_words(
    refusal: str | None, reason: str, message: str
) -> None:
    status = {"phase": "Failed", "containerStatuses": []}
    if refusal:
        word, _, said = refusal.partition(": ")
        status |= {"reason": word, "message": said}
    failure = failure_of(facts_of(0), facts_of(1, status=status))
    assert (failure.worker, failure.reason, failure.message) == (1, reason, message)
    assert failure.exit_code is None


@pytest.mark.parametrize("condition", ["DisruptionTarget", "TerminationTarget"])
def test_a_disrupted_pod_is_lost_and_no_failure(condition: str) -> None:
    said = [{"type": condition, "status": "True", "reason": "EvictionByEvictionAPI"}]
    verdict = judged(facts_of(0), facts_of(1, status={"conditions": said}))
    assert (verdict.state, verdict.lost_reason) == (AttemptState.LOST, "Disrupted")
    assert verdict.explanation == "worker 1 was disrupted (EvictionByEvictionAPI)"


@pytest.mark.parametrize("exit_code", [1, 137, 78])
def test_a_disrupted_pod_is_never_judged_by_its_exit_code(exit_code: int) -> None:
    verdict = judged(facts_of(0), disrupted(1, status=ended(exit_code)))
    assert verdict.lost_reason == "Disrupted"


def test_a_disruption_excuses_the_failures_of_peers() -> None:
    verdict = judged(failed(0, 1), disrupted(1))
    assert verdict.lost_reason == "Disrupted"


@pytest.mark.parametrize("later", [{"disruption": "EvictionByEvictionAPI"}, {"is_deleting": True}])
@pytest.mark.parametrize(
    ("peer", "state"), [({}, AttemptState.RUNNING), (ended(0), AttemptState.COMPLETE)]
)
def test_a_worker_that_completed_is_not_lost_by_what_befalls_its_pod_later(
    later: dict[str, Any], peer: dict[str, Any], state: AttemptState
) -> None:
    completed = facts_of(0, status=ended(0), **later)
    assert judged(completed, facts_of(1, status=peer)).state is state


def test_a_pod_that_is_being_deleted_is_lost_and_no_failure() -> None:
    verdict = judged(facts_of(0, is_deleting=True), failed(1, PEER_LOST))
    assert (verdict.state, verdict.lost_reason) == (AttemptState.LOST, "PodLost")
    assert verdict.explanation == "the pod of worker 0 was deleted"


def test_a_disruption_says_more_than_the_deletion_that_follows_it() -> None:
    pods = facts_of(0, is_deleting=True), disrupted(1, is_deleting=True)
    assert judged(*pods).lost_reason == "Disrupted"


def test_a_pod_that_is_missing_is_lost() -> None:
    verdict = judged(facts_of(1), workers=3)
    assert (verdict.state, verdict.lost_reason) == (AttemptState.LOST, "PodLost")
    assert verdict.explanation == "the pod of worker 0 is gone"


def test_a_consequence_alone_waits_for_its_cause() -> None:
    end_seen_at = NOW - timedelta(seconds=1)
    peer = facts_of(0, status=ended(PEER_LOST), trainer_end_seen_at=end_seen_at)
    verdict = judged(peer, facts_of(1))
    assert verdict.state is AttemptState.UNDECIDED
    assert verdict.decided_at == end_seen_at + EVIDENCE_WAIT


def test_an_end_waits_for_the_terminal_phase_in_which_a_disruption_is_told() -> None:
    verdict = judged(failed_just_now(0, 137), facts_of(1))
    assert verdict.state is AttemptState.UNDECIDED
    assert verdict.decided_at == NOW + EVIDENCE_WAIT


@pytest.mark.parametrize("exit_code", [PEER_LOST, 137])
def test_what_no_evidence_explained_counts_in_the_end(exit_code: int) -> None:
    pods = failed_just_now(0, exit_code), facts_of(1)
    assert failure_of(*pods, now=NOW + EVIDENCE_WAIT).exit_code == exit_code


def test_a_terminal_pod_is_judged_at_once() -> None:
    cause = facts_of(0, status=ended(137), trainer_end_seen_at=NOW)
    assert failure_of(cause, facts_of(1)).exit_code == 137


def test_evidence_that_comes_in_time_decides() -> None:
    waited_for = failed_just_now(0, PEER_LOST), disrupted(1)
    assert judged(*waited_for).lost_reason == "Disrupted"


@pytest.mark.parametrize(
    "message",
    [
        "not JSON",
        "[" * 4096,
        "[]",
        "null",
        '{"firstFailure": "rank 1"}',
        '{"firstFailure": {"rank": -1, "exitCode": "139", "signal": 11}}',
        '{"firstFailure": [], "message": {"no": "sentence"}}',
        '{"message": null, "samples": "many", "checkpointStep": {}}',
    ],
)
def test_a_termination_message_that_is_none_of_ours_is_passed_over(message: str) -> None:
    failure = failure_of(failed(0, 3, message=message), facts_of(1))
    assert (failure.exit_code, failure.rank, failure.signal) == (3, None, None)
    assert failure.message == "worker 0 ended with exit code 3"


def test_the_order_in_which_pods_are_seen_does_not_matter() -> None:
    def verdicts(pods: Sequence[PodFacts]) -> tuple[Verdict, Verdict]:
        return judged(*pods, workers=3), judged(*reversed(pods), workers=3)

    one, other = verdicts([failed(0, PEER_LOST), failed(1, 1), failed(2, 2)])
    assert one == other
