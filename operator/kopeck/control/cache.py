"""What the watches and our own writes have told: jobs, and the facts of their pods.

Events may come late, twice or not at all. A resource version decides which of two looks at an
object is newer; a fresh list replaces everything that is not newer than itself.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from kopeck.api.job_key import JobKey
from kopeck.api.names import (
    ANNOTATION_CHECKPOINT_REQUEST,
    LABEL_ATTEMPT,
    LABEL_JOB,
    LABEL_JOB_UID,
    LABEL_WORKER,
)
from kopeck.plan.job_view import JobView
from kopeck.plan.pod_facts import PodFacts, pod_facts

_KEPT_METADATA = {
    "namespace",
    "name",
    "uid",
    "generation",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
}


class Cache:
    """Jobs and their pods, by namespace, name and uid.

    A pod in another namespace that claims a job's uid is none of its workers.
    """

    def __init__(self) -> None:
        self._jobs: dict[JobKey, JobView] = {}
        self._pods: dict[JobKey, dict[str, PodFacts]] = {}
        self._gone: dict[JobKey, dict[str, PodFacts]] = {}

    def jobs(self) -> list[JobView]:
        return list(self._jobs.values())

    def job(self, key: JobKey) -> JobView | None:
        return self._jobs.get(key)

    def pods(self, key: JobKey) -> list[PodFacts]:
        """The pods of a job that exist."""
        return list(self._pods.get(key, {}).values())

    def gone_pods(self, key: JobKey) -> list[PodFacts]:
        """Pods that were deleted and are not yet written off."""
        return list(self._gone.get(key, {}).values())

    def see_job(self, manifest: Mapping[str, Any]) -> JobView:
        """Take in a job; the newer of the known and the seen one stays."""
        seen = JobView(_slim(manifest))
        known = self._jobs.get(seen.key)
        if known is None or _is_newer(seen.resource_version, known.resource_version):
            self._jobs[seen.key] = seen
        return self._jobs[seen.key]

    def forget_job(self, key: JobKey) -> None:
        self._jobs.pop(key, None)

    def see_pod(self, manifest: Mapping[str, Any], now: datetime) -> JobKey:
        """Take in a pod of ours; returns its job's key."""
        seen = pod_facts(manifest)
        pods = self._pods.setdefault(seen.job, {})
        known = pods.get(seen.uid)
        is_gone = seen.uid in self._gone.get(seen.job, {})
        if not is_gone and (
            known is None or _is_newer(seen.resource_version, known.resource_version)
        ):
            pods[seen.uid] = _with_end_seen(seen, known, now)
        return seen.job

    def forget_pod(self, manifest: Mapping[str, Any], now: datetime) -> JobKey:
        """Take in the last look at a deleted pod; returns its job's key."""
        last = pod_facts(manifest)
        known = self._pods.get(last.job, {}).pop(last.uid, None)
        self._gone.setdefault(last.job, {})[last.uid] = _with_end_seen(last, known, now)
        return last.job

    def write_off(self, key: JobKey, pod_uids: Iterable[str]) -> None:
        """Forget deleted pods of a job: the ledger has them."""
        for pod_uid in pod_uids:
            self._gone.get(key, {}).pop(pod_uid, None)

    def let_go(self, key: JobKey) -> bool:
        """Forget a job that is gone with all its pods; whether it is."""
        if key in self._jobs or self._pods.get(key) or self._gone.get(key):
            return False
        self._pods.pop(key, None)
        self._gone.pop(key, None)
        return True

    def replace_pods(
        self, key: JobKey, manifests: Iterable[Mapping[str, Any]], now: datetime
    ) -> None:
        """Make a fresh list of a job's pods the truth; what vanished is gone without a word."""
        ours = [manifest for manifest in manifests if is_our_pod(manifest)]
        listed = {manifest["metadata"]["uid"] for manifest in ours}
        for manifest in ours:
            self.see_pod(manifest, now)
        self._pods[key] = {
            uid: pod for uid, pod in self._pods.get(key, {}).items() if uid in listed
        }

    def drop_vanished(
        self, jobs: set[JobKey], pod_uids: set[str], resource_version: str
    ) -> set[JobKey]:
        """Drop what a fresh list of everything lacks; returns the keys of the jobs concerned.

        What is newer than the list's resource version came after it, and stays.
        """
        vanished = {
            key
            for key, job in self._jobs.items()
            if key not in jobs and not _is_newer(job.resource_version, resource_version)
        }
        for key in vanished:
            self.forget_job(key)
        return vanished | {
            key
            for key, pods in self._pods.items()
            if _drop_vanished_pods(pods, pod_uids, resource_version)
        }


def _drop_vanished_pods(pods: dict[str, PodFacts], listed: set[str], resource_version: str) -> bool:
    """Whether any pod was dropped."""
    vanished = [
        uid
        for uid, pod in pods.items()
        if uid not in listed and not _is_newer(pod.resource_version, resource_version)
    ]
    for uid in vanished:
        del pods[uid]
    return bool(vanished)


def is_our_pod(manifest: Mapping[str, Any]) -> bool:
    """Whether a pod is a worker that a TrainingJob controls; labels alone anybody can write."""
    labels = manifest["metadata"].get("labels", {})
    if not {LABEL_JOB, LABEL_JOB_UID, LABEL_ATTEMPT, LABEL_WORKER} <= labels.keys():
        return False
    if not (labels[LABEL_ATTEMPT].isdecimal() and labels[LABEL_WORKER].isdecimal()):
        return False
    owners = manifest["metadata"].get("ownerReferences", [])
    return any(owner["uid"] == labels[LABEL_JOB_UID] for owner in owners)


def _slim(manifest: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {
        key: manifest["metadata"][key] for key in _KEPT_METADATA & manifest["metadata"].keys()
    }
    if request := JobView(manifest).checkpoint_request:
        metadata["annotations"] = {ANNOTATION_CHECKPOINT_REQUEST: request}
    return {"metadata": metadata, "spec": manifest["spec"], "status": manifest.get("status", {})}


def _with_end_seen(seen: PodFacts, known: PodFacts | None, now: datetime) -> PodFacts:
    if seen.trainer.exit_code is None:
        return seen
    since = known.trainer_end_seen_at if known else None
    return replace(seen, trainer_end_seen_at=since or now)


def _is_newer(one: str, other: str) -> bool:
    """Resource versions are integers that grow: https://kep.k8s.io/5504."""
    return int(one) > int(other)
