"""Faults in real pods: training continues from its checkpoint, or ends with the cause named."""

import re
from fractions import Fraction
from typing import Any

import pytest

from tests.e2e.conftest import Installation
from tests.e2e.in_pods import kill_ranks, log_of
from tests.e2e.jobs import a_recorded_training, a_small_training, recording_module
from tests.fake_pods import path_of
from tests.spend import dollars_of
from tests.waiting import eventually
from tests.workplace import Workplace

pytestmark = pytest.mark.usefixtures("installation")

STEPS, BATCH, CHECKPOINT_STEPS = 200, 16, 20
_GRACE_SECONDS = 120
_A_NANODOLLAR = Fraction(1, 10**9)  # what status rounds to


def has_checkpoint(workplace: Workplace, name: str) -> None:
    training = workplace.status(name).get("training", {})
    assert training.get("checkpointStep", 0) >= CHECKPOINT_STEPS, workplace.status(name)


def completes_from_a_checkpoint(workplace: Workplace, name: str) -> tuple[dict[str, Any], int]:
    """The status once the second attempt has completed, and the step that it began after."""
    first = workplace.running_pods(name, attempt=1, count=2, seconds=120)[0]
    status = workplace.reaches(name, "Complete", seconds=240)
    resumed = re.search(r"resumed after step (\d+)", log_of(workplace, first))
    assert resumed, log_of(workplace, first)
    assert int(resumed[1]) >= CHECKPOINT_STEPS
    assert status["training"]["step"] == STEPS
    assert status["training"]["samples"] == STEPS * BATCH
    return status, int(resumed[1])


def trains_beyond_a_checkpoint(workplace: Workplace) -> tuple[str, list[dict[str, Any]]]:
    """The name and the pods of a job that writes down its samples."""
    configmaps = f"/api/v1/namespaces/{workplace.namespace}/configmaps"
    workplace.kube.create(configmaps, recording_module())
    name = workplace.create(a_recorded_training())
    pods = workplace.running_pods(name, attempt=0, count=2, seconds=120)
    eventually(lambda: has_checkpoint(workplace, name), seconds=120)
    return name, pods


def test_a_killed_rank_is_counted_once_and_training_goes_on_from_the_checkpoint(
    workplace: Workplace,
) -> None:
    name, pods = trains_beyond_a_checkpoint(workplace)
    kill_ranks(workplace, pods[1])
    status, resumed_step = completes_from_a_checkpoint(workplace, name)
    assert status["restarts"] == {"failures": 1, "total": 1}
    failure = status["lastFailure"]
    assert (failure["signal"], failure["rank"], failure["worker"]) == ("SIGKILL", 1, 1)
    assert failure["exitCode"] == 137
    assert_both_attempts_are_charged(workplace, name)
    assert_each_sample_is_kept_once(workplace, resumed_step)


def assert_each_sample_is_kept_once(workplace: Workplace, resumed_step: int) -> None:
    taken = samples_kept(workplace, resumed_step)
    assert len(taken) == STEPS * BATCH
    assert len(set(taken)) == len(taken), "a sample was kept twice"


def samples_kept(workplace: Workplace, resumed_step: int) -> list[str]:
    """Numbers of the samples of both attempts, without the work that the first one lost."""
    folder = workplace.cluster.checkpoints(workplace.namespace)
    kept_by_rank = resumed_step * BATCH // 2
    kept: list[str] = []
    for rank in (0, 1):
        kept += (folder / f"samples-a0-r{rank}").read_text().split()[:kept_by_rank]
        kept += (folder / f"samples-a1-r{rank}").read_text().split()
    return kept


def test_a_deleted_pod_is_no_failure_and_training_goes_on(workplace: Workplace) -> None:
    name, pods = trains_beyond_a_checkpoint(workplace)
    workplace.kube.delete(path_of(pods[1]))
    status, resumed_step = completes_from_a_checkpoint(workplace, name)
    assert status["restarts"] == {"failures": 0, "total": 1}
    assert status["restartReason"] == "PodLost"
    assert_both_attempts_are_charged(workplace, name)
    assert_each_sample_is_kept_once(workplace, resumed_step)


def assert_both_attempts_are_charged(workplace: Workplace, name: str) -> None:
    """Every pod of every attempt has one closed, exact segment; status is their sum."""

    def closed() -> None:
        segments = workplace.ledger(name)["segments"].values()
        assert sorted(each["attempt"] for each in segments) == [0, 0, 1, 1]
        assert all("end" in each for each in segments)
        assert not any(each.get("estimatedEnd") for each in segments), segments
        spent = Fraction(workplace.status(name)["cost"]["spent"])
        assert abs(spent - dollars_of(segments)) <= _A_NANODOLLAR, (spent, segments)

    eventually(closed)


def test_a_builder_that_does_not_import_ends_the_job_and_says_so(workplace: Workplace) -> None:
    job = a_small_training()
    job["spec"]["entrypoint"] = "no_such_module:build"
    name = workplace.create(job)
    status = workplace.reaches(name, "Failed", seconds=120)
    failed = workplace.condition(name, "Failed")
    assert failed["reason"] == "Configuration"
    assert "spec.entrypoint" in failed["message"]
    assert "no_such_module" in failed["message"]
    assert status["restarts"]["total"] == 0


def test_a_missing_image_is_named_while_it_waits_and_when_it_ends(workplace: Workplace) -> None:
    job = a_small_training()
    job["spec"]["image"] = "localhost/no-such-image:1"
    name = workplace.create(job)

    def named() -> None:
        running = workplace.condition(name, "Running")
        assert running["reason"] == "ImageNotPulled", running
        assert "localhost/no-such-image:1" in running["message"]

    eventually(named)
    workplace.end_startup(name)
    assert workplace.condition(name, "Failed")["reason"] == "ImageNotPulled"


def test_a_pod_that_no_node_can_hold_is_named(workplace: Workplace) -> None:
    job = a_small_training()
    job["spec"]["workers"]["resources"] = {"requests": {"cpu": "500", "memory": "1Gi"}}
    name = workplace.create(job)

    def named() -> None:
        assert workplace.condition(name, "Running")["reason"] == "Unschedulable"

    eventually(named)
    workplace.end_startup(name)
    failed = workplace.condition(name, "Failed")
    assert failed["reason"] == "Unschedulable"
    assert "Insufficient cpu" in failed["message"]


def test_deleting_a_running_job_leaves_no_service_configmap_or_pod(
    installation: Installation, workplace: Workplace
) -> None:
    name = workplace.create(a_small_training())
    workplace.running_pods(name, attempt=0, count=2, seconds=120)
    installation.cluster.kubectl(
        "delete", "tj", name, "--namespace", workplace.namespace, "--wait=false"
    )

    def nothing_is_left() -> None:
        for kind in ("pods", "services", "configmaps"):
            path = f"/api/v1/namespaces/{workplace.namespace}/{kind}"
            assert workplace.kube.list(path, "kopeck.dev/job") == []

    eventually(nothing_is_left, seconds=_GRACE_SECONDS - 20)  # else some process never heard of it
