"""What is known of jobs and pods, though events come late, twice or not at all."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopeck.api.job_key import JobKey
from kopeck.control.cache import Cache, is_our_pod
from tests.builders import JOB_UID, T0, a_job_view, a_pod, after, ended


def key(uid: str) -> JobKey:
    return JobKey("default", "job", uid)


JOB = key(JOB_UID)


def a_job(uid: str = JOB_UID, version: int = 1, **status: Any) -> dict[str, Any]:
    manifest = dict(a_job_view(status).manifest)
    manifest["metadata"] = manifest["metadata"] | {"uid": uid, "resourceVersion": str(version)}
    return manifest


def at_version(version: int, worker: int = 0, **how: Any) -> dict[str, Any]:
    return a_pod(worker, resourceVersion=str(version), **how)


def workers(cache: Cache) -> list[int]:
    return sorted(pod.worker for pod in cache.pods(JOB))


def test_the_newer_look_at_a_job_stays_in_whatever_order_they_come() -> None:
    for versions in ([9, 10], [10, 9]):
        cache = Cache()
        for version in versions:
            cache.see_job(a_job(version=version, attempt=version))
        job = cache.job(JOB)
        assert job is not None
        assert job.status.attempt == 10


def test_of_a_jobs_annotations_only_the_request_for_a_checkpoint_is_kept() -> None:
    asked = {"kopeck.dev/checkpoint-request": "now"}
    manifest = a_job()
    manifest["metadata"]["annotations"] = asked | {"last-applied": "a" * 10_000}
    seen = Cache().see_job(manifest)
    assert seen.checkpoint_request == "now"
    assert seen.manifest["metadata"]["annotations"] == asked


def test_an_old_look_at_a_job_returns_what_is_known() -> None:
    cache = Cache()
    cache.see_job(a_job(version=10, attempt=10))
    assert cache.see_job(a_job(version=9, attempt=9)).status.attempt == 10


def test_the_newer_look_at_a_pod_stays_in_whatever_order_they_come() -> None:
    for versions in ([9, 10], [10, 9]):
        cache = Cache()
        for version in versions:
            status = {"phase": "Running" if version == 10 else "Pending"}
            cache.see_pod(at_version(version, status=status), T0)
        assert [pod.phase for pod in cache.pods(JOB)] == ["Running"]


@given(st.permutations(range(1, 7)))
def test_of_any_number_of_looks_the_newest_stays(versions: list[int]) -> None:
    cache = Cache()
    for version in versions:
        cache.see_pod(at_version(version), T0)
    assert [pod.resource_version for pod in cache.pods(JOB)] == ["6"]


def test_managed_fields_and_annotations_of_a_job_are_not_kept() -> None:
    manifest = a_job()
    manifest["metadata"] = manifest["metadata"] | {
        "managedFields": [{"manager": "kubectl"}],
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"},
    }
    kept = Cache().see_job(manifest).manifest["metadata"]
    assert not {"managedFields", "annotations"} & kept.keys()


def test_a_deleted_pod_is_kept_until_it_is_written_off() -> None:
    cache = Cache()
    cache.see_pod(at_version(1), T0)
    cache.forget_pod(at_version(2), T0)
    assert workers(cache) == []
    (gone,) = cache.gone_pods(JOB)
    cache.write_off(JOB, [gone.uid])
    assert cache.gone_pods(JOB) == []


def test_a_late_look_does_not_bring_a_deleted_pod_back() -> None:
    cache = Cache()
    cache.forget_pod(at_version(2), T0)
    cache.see_pod(at_version(1), T0)
    assert workers(cache) == []


def test_a_pod_of_the_same_name_with_another_uid_is_another_pod() -> None:
    cache = Cache()
    cache.forget_pod(at_version(2), T0)
    cache.see_pod(at_version(3, uid="its-successor"), T0)
    assert [pod.uid for pod in cache.pods(JOB)] == ["its-successor"]


def test_when_an_end_was_first_seen_is_remembered() -> None:
    cache = Cache()
    cache.see_pod(at_version(1), T0)
    (running,) = cache.pods(JOB)
    assert running.trainer_end_seen_at is None
    cache.see_pod(at_version(2, status=ended(1)), after(seconds=10))
    cache.see_pod(at_version(3, status=ended(1)), after(seconds=20))
    (failed,) = cache.pods(JOB)
    assert failed.trainer_end_seen_at == after(seconds=10)
    cache.forget_pod(at_version(4, status=ended(1)), after(seconds=30))
    (gone,) = cache.gone_pods(JOB)
    assert gone.trainer_end_seen_at == after(seconds=10)


def test_a_fresh_list_of_a_jobs_pods_drops_what_vanished_and_keeps_what_is_newer() -> None:
    cache = Cache()
    for worker in (0, 1):
        cache.see_pod(at_version(5, worker, status={"phase": "Running"}), T0)
    listed = [at_version(4, 1, status={"phase": "Pending"}), at_version(6, 2)]
    cache.replace_pods(JOB, listed, T0)
    assert workers(cache) == [1, 2]
    assert {pod.phase for pod in cache.pods(JOB)} == {"Running"}


def test_a_fresh_list_with_a_strangers_pod_leaves_it_out() -> None:
    cache = Cache()
    cache.replace_pods(JOB, [at_version(1), at_version(1, 1, ownerReferences=[])], T0)
    assert workers(cache) == [0]


def test_a_list_of_everything_drops_what_vanished_before_it() -> None:
    cache = Cache()
    cache.see_job(a_job("stays", version=3))
    cache.see_job(a_job("vanished", version=3))
    cache.see_job(a_job("newer", version=9))
    concerned = cache.drop_vanished({key("stays")}, set(), resource_version="5")
    assert concerned == {key("vanished")}
    assert {job.key.uid for job in cache.jobs()} == {"stays", "newer"}


def test_a_list_of_everything_tells_whose_pods_vanished() -> None:
    cache = Cache()
    cache.see_job(a_job(version=3))
    cache.see_pod(at_version(3, 0), T0)
    cache.see_pod(at_version(3, 1), T0)
    cache.see_pod(at_version(9, 2), T0)
    concerned = cache.drop_vanished({JOB}, {"pod-0-0"}, resource_version="5")
    assert concerned == {JOB}
    assert workers(cache) == [0, 2]
    assert cache.job(JOB) is not None


def test_a_job_is_let_go_once_it_is_gone_with_all_its_pods() -> None:
    cache = Cache()
    cache.see_job(a_job())
    cache.see_pod(at_version(1, 0), T0)
    assert not cache.let_go(JOB)
    cache.forget_job(JOB)
    assert not cache.let_go(JOB), "a pod of it exists"
    cache.forget_pod(at_version(2, 0), T0)
    assert not cache.let_go(JOB), "a pod of it is not written off"
    assert [pod.worker for pod in cache.gone_pods(JOB)] == [0]
    cache.write_off(JOB, ["pod-0-0"])
    assert cache.let_go(JOB)
    assert (cache.jobs(), cache.pods(JOB), cache.gone_pods(JOB)) == ([], [], [])


def test_a_pod_of_another_namespace_that_claims_a_jobs_uid_is_none_of_its_workers() -> None:
    cache = Cache()
    cache.see_job(a_job())
    cache.see_pod(at_version(1, 0), T0)
    cache.see_pod(at_version(1, 1, namespace="elsewhere"), T0)
    assert workers(cache) == [0]


def test_a_worker_pod_is_ours() -> None:
    assert is_our_pod(a_pod())


@pytest.mark.parametrize(
    "owners", [[], [{"uid": "another-job", "controller": True}], [{"uid": "another-pod"}]]
)
def test_labels_alone_do_not_make_a_pod_ours(owners: list[dict[str, Any]]) -> None:
    assert not is_our_pod(a_pod(ownerReferences=owners))


@pytest.mark.parametrize("missing", ["job", "job-uid", "attempt", "worker"])
def test_an_owner_alone_does_not_make_a_pod_ours(missing: str) -> None:
    pod = a_pod()
    del pod["metadata"]["labels"][f"kopeck.dev/{missing}"]
    assert not is_our_pod(pod)


@pytest.mark.parametrize("label", ["attempt", "worker"])
@pytest.mark.parametrize("value", ["", "first", "-1", "1.5", "1e3"])
def test_a_pod_whose_labels_are_no_numbers_is_not_ours(label: str, value: str) -> None:
    pod = a_pod()
    pod["metadata"]["labels"][f"kopeck.dev/{label}"] = value
    assert not is_our_pod(pod)


def test_a_pod_without_labels_or_owners_is_not_ours() -> None:
    assert not is_our_pod({"metadata": {"name": "stranger"}})
