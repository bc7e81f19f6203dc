"""What is remembered of a pod as the API server shows it."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from kopeck.plan.pod_facts import PodFacts, pod_facts
from tests.builders import a_pod, a_report, ended, waiting


def facts(status: dict[str, Any] | None = None, **metadata: Any) -> PodFacts:
    return pod_facts(a_pod(status=status, **metadata))


def at(hour: int, second: int = 0) -> datetime:
    return datetime(2026, 1, 1, hour, 0, second, tzinfo=UTC)


def container(name: str, **state: Any) -> dict[str, Any]:
    return {"name": name, "state": state}


def terminated(finished_at: str, exit_code: int = 0) -> dict[str, Any]:
    return {"exitCode": exit_code, "finishedAt": finished_at}


def test_labels_say_whose_pod_it_is() -> None:
    pod = pod_facts(a_pod(worker=3, attempt=2))
    assert (pod.job, pod.attempt, pod.worker) == (("default", "job", "abcdef"), 2, 3)


def test_a_pod_that_was_just_created_has_no_status_yet() -> None:
    manifest = a_pod()
    del manifest["status"]
    del manifest["spec"]["nodeName"]
    pod = pod_facts(manifest)
    assert (pod.phase, pod.node, pod.scheduled_at) == ("Pending", None, None)
    assert not pod.trainer.runs


def test_a_pod_is_scheduled_when_its_condition_says_so() -> None:
    assert facts().scheduled_at == at(0)


def test_a_pod_that_was_bound_without_a_condition_counts_from_its_creation() -> None:
    assert facts({"conditions": []}).scheduled_at == at(0)


def test_the_scheduler_says_why_a_pod_has_no_node() -> None:
    said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    assert facts({"conditions": [said | {"message": "no nodes"}]}).unschedulable == "no nodes"
    assert facts({"conditions": [said]}).unschedulable == "Unschedulable"


def test_the_trainer_is_found_among_other_containers() -> None:
    statuses = [
        container("log-shipper", terminated=terminated("2026-01-01T00:00:01Z", exit_code=1)),
        container("trainer", running={"startedAt": "2026-01-01T00:00:05Z"}),
    ]
    pod = facts({"containerStatuses": statuses})
    assert pod.trainer.runs
    assert not pod.has_failed


def test_an_ended_trainer_says_when_and_how() -> None:
    trainer = facts(ended(137, reason="OOMKilled")).trainer
    assert (trainer.exit_code, trainer.finished_at, trainer.reason) == (137, at(1), "OOMKilled")


def test_a_waiting_trainer_says_why() -> None:
    trainer = facts(waiting("ErrImagePull", "manifest unknown")).trainer
    assert (trainer.reason, trainer.message) == ("ErrImagePull", "manifest unknown")
    assert not trainer.runs


def test_a_pod_has_ended_with_the_last_of_its_containers_sidecars_too() -> None:
    status = {
        "phase": "Succeeded",
        "containerStatuses": [container("trainer", terminated=terminated("2026-01-01T01:00:00Z"))],
        "initContainerStatuses": [
            container("setup", terminated=terminated("2026-01-01T00:00:02Z")),
            container("kopeck-exporter", terminated=terminated("2026-01-01T01:00:02Z")),
        ],
    }
    assert facts(status).ended_at == at(1, 2)


def test_a_pod_whose_sidecar_runs_has_not_ended() -> None:
    sidecar = container("kopeck-exporter", running={"startedAt": "2026-01-01T00:00:01Z"})
    assert facts(ended(0) | {"initContainerStatuses": [sidecar]}).ended_at is None


def test_a_pod_that_was_refused_ended_without_saying_when() -> None:
    refused = {
        "phase": "Failed",
        "reason": "OutOfcpu",
        "message": "Node didn't have enough resource: cpu",
        "containerStatuses": [],
    }
    pod = facts(refused)
    assert pod.ended_at is None
    assert pod.has_failed
    assert pod.refusal == "OutOfcpu: Node didn't have enough resource: cpu"


def test_a_sentence_of_a_pod_that_lives_is_no_refusal() -> None:
    assert facts({"reason": "NodeLost"}).refusal is None


@pytest.mark.parametrize("status", ["False", "Unknown"])
def test_a_disruption_that_does_not_hold_is_none(status: str) -> None:
    condition = {"type": "DisruptionTarget", "status": status, "reason": "Eviction"}
    assert facts({"conditions": [condition]}).disruption is None


def test_a_deletion_is_seen() -> None:
    assert facts(deletionTimestamp="2026-01-01T00:00:00Z").is_deleting
    assert not facts().is_deleting


def test_requests_are_those_that_the_scheduler_counts() -> None:
    manifest = a_pod()
    sidecar = {"resources": {"requests": {"cpu": "100m"}}, "restartPolicy": "Always"}
    manifest["spec"] |= {
        "containers": [{"name": "trainer", "resources": {"requests": {"cpu": "2"}}}],
        "initContainers": [{"name": "kopeck-exporter"} | sidecar],
    }
    assert pod_facts(manifest).requests == {"cpu": Decimal("2.1")}


def test_the_final_report_is_the_termination_message() -> None:
    report = facts(ended(0, message=a_report())).final_report
    assert (report["samples"], report["samplesPerSecond"]) == (320, 40.0)


def test_the_message_of_a_container_that_waits_is_no_report() -> None:
    assert facts(waiting("ErrImagePull", '{"samples": 7}')).final_report == {}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("samples", "many"),
        ("samples", -1),
        ("samples", 2**63),
        ("step", True),
        ("step", 1.5),
        ("loss", float("nan")),
        ("loss", float("inf")),
        ("loss", "2.5"),
        ("samplesPerSecond", None),
        ("compileMode", 3),
        ("message", ["no", "sentence"]),
    ],
)
def test_of_a_report_only_the_fields_that_are_wrong_are_left_out(field: str, value: Any) -> None:
    right = facts(ended(0, message=a_report(message="done"))).final_report
    read = facts(ended(0, message=a_report(message="done") | {field: value})).final_report
    assert read == {name: each for name, each in right.items() if name != field}
