"""Why an attempt does not run yet."""

import pytest

from kopeck.api.run_policy import RunPolicySpec
from kopeck.api.status import Effective
from kopeck.plan.pod_facts import PodFacts
from kopeck.plan.starting import deadline, why_it_waits
from tests.builders import after, ended, facts_of, waiting


def unscheduled(
    worker: int, said: str = "0/4 nodes are available: 4 Insufficient cpu."
) -> PodFacts:
    return facts_of(worker, unschedulable=said, node=None, status=waiting("PodInitializing"))


@pytest.mark.parametrize("reason", ["ErrImagePull", "ImagePullBackOff", "InvalidImageName"])
def test_an_image_that_cannot_be_pulled_is_named_with_what_to_check(reason: str) -> None:
    pods = facts_of(0), facts_of(1, status=waiting(reason, "manifest unknown"))
    assert why_it_waits(pods, 2) == (
        "ImageNotPulled",
        f"worker 1: {reason}: manifest unknown; check spec.image and its pull secrets",
    )


def test_the_scheduler_is_quoted() -> None:
    assert why_it_waits([unscheduled(1), facts_of(0)], 2) == (
        "Unschedulable",
        "worker 1 has no node: 0/4 nodes are available: 4 Insufficient cpu.",
    )


def test_a_container_that_cannot_be_configured_is_told_in_the_kubelets_words() -> None:
    status = waiting("CreateContainerConfigError", 'configmap "job-abcde-0123456789" not found')
    assert why_it_waits([facts_of(0, status=status)], 1) == (
        "ContainerNotStarted",
        'worker 0: CreateContainerConfigError: configmap "job-abcde-0123456789" not found',
    )


def test_the_sidecars_image_is_told_while_the_trainer_waits_for_it() -> None:
    state = {"waiting": {"reason": "ErrImagePull", "message": "not found"}}
    status = waiting("PodInitializing") | {
        "initContainerStatuses": [{"name": "kopeck-exporter", "state": state}]
    }
    reason, said = why_it_waits([facts_of(0, status=status)], 1)
    assert (reason, said.split(";")[0]) == ("ImageNotPulled", "worker 0: ErrImagePull: not found")


def test_an_image_says_more_than_a_full_cluster_and_that_more_than_the_rest() -> None:
    image = facts_of(2, status=waiting("ErrImagePull"))
    config = facts_of(0, status=waiting("CreateContainerConfigError"))
    assert why_it_waits([config, unscheduled(1), image], 3)[0] == "ImageNotPulled"
    assert why_it_waits([config, unscheduled(1)], 3)[0] == "Unschedulable"
    assert why_it_waits([config], 3)[0] == "ContainerNotStarted"


def test_of_several_the_lowest_worker_is_told() -> None:
    pods = [facts_of(worker, status=waiting("ErrImagePull")) for worker in (7, 3, 5)]
    assert why_it_waits(pods, 8)[1].startswith("worker 3:")


def test_a_reason_without_a_message_stands_alone() -> None:
    status = waiting("CreateContainerError")
    assert why_it_waits([facts_of(0, status=status)], 1)[1] == "worker 0: CreateContainerError"


@pytest.mark.parametrize("reason", ["ContainerCreating", "PodInitializing"])
def test_what_starts_as_it_should_is_counted(reason: str) -> None:
    pods = facts_of(0), facts_of(1, status=ended(0)), facts_of(2, status=waiting(reason))
    assert why_it_waits(pods, 4) == ("Starting", "2 of 4 workers run")


def test_no_pods_at_all_are_none_that_run() -> None:
    assert why_it_waits([], 4) == ("Starting", "0 of 4 workers run")


def test_the_deadline_counts_from_when_the_pods_were_first_asked_for() -> None:
    effective = Effective(revision="r", workers=1, created_at="2026-01-01T00:00:00Z")
    policy = RunPolicySpec(startup_deadline_seconds=60)
    assert deadline(effective, policy) == after(seconds=60)


def test_nothing_that_was_never_asked_for_can_be_late() -> None:
    assert deadline(Effective(revision="r", workers=1), RunPolicySpec()) is None
