"""The life of a job, pass after pass."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from kopeck.api.errors import SpecError
from kopeck.plan.step import Step
from tests.builders import JOB_UID, T0, a_job_view, after, ended, facts_of, waiting
from tests.unit.plan.life import Life, creates_nothing


def a_running_job(**spec: Any) -> Life:
    life = Life(a_job_view(**spec))
    life.go_on()
    life.go_on()
    life.all_run()
    life.go_on()
    assert life.status.phase == "Running"
    return life


def names(manifests: Sequence[dict[str, Any]]) -> list[str]:
    return [each["metadata"]["name"] for each in manifests]


def test_a_job_is_accepted_in_writing_before_anything_is_made() -> None:
    step = Life().step()
    assert creates_nothing(step)
    assert step.status.phase == "Pending"
    assert step.status.selector == f"kopeck.dev/job-uid={JOB_UID}"
    assert step.status.effective is not None
    assert step.status.effective.workers == 2


def test_the_pods_follow_with_their_service_and_configuration() -> None:
    life = Life()
    life.go_on()
    step = life.step()
    assert names(step.pods) == ["job-abcde-a0-w0", "job-abcde-a0-w1"]
    assert step.service is not None
    assert step.config is not None
    assert step.status.effective == life.status.effective


def test_only_missing_pods_are_made() -> None:
    life = Life()
    life.go_on()
    life.pods = [facts_of(1)]
    assert names(life.step().pods) == ["job-abcde-a0-w0"]


def test_nothing_is_made_again_once_all_pods_have_existed() -> None:
    life = a_running_job()
    life.pods = life.pods[:1]
    assert creates_nothing(life.step())


def test_a_job_starts_and_then_runs() -> None:
    life = Life()
    life.go_on()
    life.go_on()
    life.go_on()
    assert (life.status.phase, life.condition("Running")[1:]) == (
        "Starting",
        ("Starting", "0 of 2 workers run"),
    )
    life.all_run()
    life.now = after(minutes=3)
    life.go_on()
    assert life.status.phase == "Running"
    assert life.status.start_time == "2026-01-01T00:03:00Z"
    assert life.condition("Running") == ("True", "Running", "all 2 workers run")


def test_a_job_that_runs_on_changes_nothing() -> None:
    life = a_running_job()
    life.now = after(hours=5)
    step = life.step()
    assert step == Step(life.status)


def test_a_job_completes_with_its_workers() -> None:
    life = a_running_job()
    life.end(0, 0)
    life.go_on()
    assert life.status.phase == "Running"
    life.end(1, 0)
    step = life.go_on()
    assert step.cannot_be_undone
    assert life.status.phase == "Complete"
    assert life.condition("Complete")[1:] == (
        "Complete",
        "training is complete after 320 samples",
    )
    assert life.condition("Running")[0] == "False"
    assert life.status.training is not None
    assert life.status.training.samples == 320


def test_a_job_whose_compiled_results_differed_says_so_for_good() -> None:
    life = a_running_job()
    life.end(0, 0, numericsMismatch="default differs from eager: loss 2 compiled, 1 eager")
    life.end(1, 0, numericsMismatch="default differs from eager: loss 2 compiled, 1 eager")
    life.go_on()
    assert life.status.phase == "Complete"
    status, reason, message = life.condition("Degraded")
    assert (status, reason) == ("True", "NumericsMismatch")
    assert message.startswith("default differs from eager: loss 2 compiled, 1 eager; it is not")


def test_a_complete_job_keeps_its_pods_for_their_logs() -> None:
    life = a_running_job()
    life.end(0, 0)
    life.end(1, 0)
    life.go_on()
    assert life.step() == Step(life.status)


def test_a_failure_is_counted_first_then_the_pods_go_then_new_ones_come() -> None:
    life = a_running_job(runPolicy={"backoffSeconds": 0})
    life.end(1, 139, checkpointStep=10)
    counted = life.go_on()
    assert not counted.old_attempts
    assert creates_nothing(counted)
    assert (life.status.phase, life.status.attempt) == ("Restarting", 1)
    assert life.status.restarts.model_dump() == {"failures": 1, "total": 1}
    assert life.status.last_failure is not None
    assert life.status.last_failure.exit_code == 139
    assert life.status.training is not None
    assert life.status.training.samples == 160

    deleted = life.step()
    assert deleted.old_attempts == [0]
    assert deleted.old_attempts_grace_seconds == 5
    assert creates_nothing(deleted)

    life.go_on()
    assert names(life.go_on().pods) == ["job-abcde-a1-w0", "job-abcde-a1-w1"]


def test_new_pods_wait_until_the_last_old_one_is_gone() -> None:
    life = a_running_job(runPolicy={"backoffSeconds": 0})
    life.end(1, 1)
    life.go_on()
    life.pods = [replace(pod, is_deleting=True) for pod in life.pods]
    step = life.step()
    assert not step.old_attempts
    assert creates_nothing(step)


def test_new_pods_wait_for_the_backoff_and_the_deadline_counts_from_its_end() -> None:
    life = a_running_job(runPolicy={"backoffSeconds": 40, "startupDeadlineSeconds": 60})
    life.end(0, 1)
    life.go_on()
    life.go_on()
    step = life.go_on()
    assert creates_nothing(step)
    assert step.due_at == after(seconds=40)
    life.now = after(seconds=40)
    step = life.step()
    assert len(step.pods) == 2
    assert step.due_at == after(seconds=100)


def test_a_failure_beyond_the_limit_is_final_and_frees_the_survivors() -> None:
    life = a_running_job(runPolicy={"backoffLimit": 0})
    life.end(1, 1, message="ValueError: no")
    life.go_on()
    assert life.status.phase == "Failed"
    assert life.status.attempt == 0
    assert life.condition("Failed")[1:] == (
        "ExitCode",
        "ValueError: no; spec.runPolicy.backoffLimit (0) is used up",
    )
    step = life.step()
    assert [pod.worker for pod in step.ended_pods] == [0]
    assert step.cannot_be_undone
    life.go_on()
    life.go_on()
    assert life.status.replicas == 1
    assert life.step() == Step(life.status)


def test_a_wrong_configuration_is_final_whatever_the_limit() -> None:
    life = a_running_job()
    life.end(0, 78, message="spec.entrypoint: no such module")
    life.go_on()
    assert life.condition("Failed")[1:] == ("Configuration", "spec.entrypoint: no such module")


def test_a_disruption_is_a_new_attempt_and_no_failure() -> None:
    life = a_running_job()
    life.see(1, disruption="PreemptionByScheduler")
    life.go_on()
    assert life.status.restarts.model_dump() == {"failures": 0, "total": 1}
    assert life.status.restart_reason == "Disrupted"
    assert life.status.last_failure is None
    step = life.step()
    assert step.old_attempts == [0]
    assert step.old_attempts_grace_seconds is None


def test_a_lost_pod_is_a_new_attempt_without_a_wait() -> None:
    life = a_running_job(runPolicy={"backoffSeconds": 300})
    life.pods = life.pods[1:]
    life.go_on()
    assert life.status.restart_reason == "PodLost"
    assert life.status.retry_at is None
    life.go_on()
    assert len(life.step().pods) == 2


def test_an_end_without_its_cause_waits_for_evidence_in_status_quo() -> None:
    life = a_running_job()
    life.see(0, status=ended(181), trainer_end_seen_at=T0)
    step = life.step()
    assert step == Step(life.status.model_copy(update={"ready_replicas": 1}), due_at=step.due_at)
    assert step.due_at == after(seconds=5)


def test_a_job_that_does_not_start_in_time_fails_with_what_it_waited_for() -> None:
    life = Life(a_job_view(runPolicy={"startupDeadlineSeconds": 60}))
    life.go_on()
    life.go_on()
    for worker in (0, 1):
        life.see(worker, status=waiting("ErrImagePull", "manifest unknown"))
    step = life.go_on()
    assert step.due_at == after(seconds=60)
    life.now = after(seconds=60)
    life.go_on()
    status, reason, message = life.condition("Failed")
    assert (status, reason) == ("True", "ImageNotPulled")
    assert "worker 0: ErrImagePull: manifest unknown" in message
    assert message.endswith("not started within spec.runPolicy.startupDeadlineSeconds (60)")
    assert [pod.worker for pod in life.step().ended_pods] == [0, 1]


def test_pods_that_were_refused_until_the_deadline_fail_with_the_refusals_words() -> None:
    life = Life(a_job_view(runPolicy={"startupDeadlineSeconds": 60}))
    life.go_on()
    conditions = [
        each.model_copy(update={"reason": "Refused", "message": "exceeded quota: few"})
        for each in life.status.conditions
    ]
    life.write(life.status.model_copy(update={"conditions": conditions}))
    life.now = after(seconds=60)
    life.go_on()
    assert life.condition("Failed")[1] == "Refused"
    assert "exceeded quota: few" in life.condition("Failed")[2]


def test_a_job_that_once_ran_is_not_late() -> None:
    life = a_running_job(runPolicy={"startupDeadlineSeconds": 60})
    life.see(0, status=waiting("ContainerCreating"))
    life.now = after(hours=1)
    assert life.step().status.phase == "Running"


def test_another_number_of_workers_is_a_new_attempt_of_the_same_revision() -> None:
    life = a_running_job()
    before = life.status.effective
    life.change(workers={"replicas": 4})
    step = life.go_on()
    assert step.cannot_be_undone
    assert life.status.restart_reason == "Resized"
    assert life.status.effective is not None
    assert before is not None
    assert (life.status.effective.workers, life.status.effective.revision) == (4, before.revision)
    assert life.step().old_attempts_grace_seconds is None
    life.go_on()
    assert len(life.step().pods) == 4


def test_another_spec_is_a_new_revision() -> None:
    life = a_running_job()
    life.change(parameters={"dim": 64})
    life.go_on()
    assert life.status.restart_reason == "NewRevision"
    assert life.status.observed_generation == 2


def test_another_policy_restarts_nothing() -> None:
    life = a_running_job()
    life.change(runPolicy={"backoffLimit": 9})
    life.go_on()
    assert (life.status.attempt, life.status.observed_generation) == (0, 2)


def test_a_finished_job_is_not_started_again_by_another_spec() -> None:
    life = a_running_job()
    life.end(0, 0)
    life.end(1, 0)
    life.go_on()
    life.change(parameters={"dim": 64})
    assert life.step() == Step(life.status)


def test_a_spec_that_cannot_be_run_is_refused_and_not_half_run() -> None:
    containers = [{"name": "trainer", "env": [{"name": "KOPECK_JOB", "value": "mine"}]}]
    life = Life(a_job_view(workers={"template": {"spec": {"containers": containers}}}))
    life.go_on()
    with pytest.raises(SpecError, match="sets KOPECK_JOB, which is kopeck's"):
        life.step()
