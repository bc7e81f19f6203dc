"""What the watches and our own writes have told: jobs, and the facts of their pods.

Events may come late, twice or not at all. A resource version decides which of two looks at an
object is newer; a fresh list replaces everything that is not newer than itself.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from kopeck.api.names import LABEL_ATTEMPT, LABEL_JOB, LABEL_JOB_UID, LABEL_WORKER
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
    """Jobs by uid, and their pods."""

    def __init__(self) -> None:
        self._jobs: dict[str, JobView] = {}
        self._pods: dict[str, dict[str, PodFacts]] = {}
        self._gone: dict[str, dict[str, PodFacts]] = {}

    def jobs(self) -> list[JobView]:
        return list(self._jobs.values())

    def job(self, uid: str) -> JobView | None:
        return self._jobs.get(uid)

    def pods(self, uid: str) -> list[PodFacts]:
        """The pods of a job that exist."""
        return list(self._pods.get(uid, {}).values())

    def gone_pods(self, uid: str) -> list[PodFacts]:
        """Pods that were deleted and are not yet written off."""
        return list(self._gone.get(uid, {}).values())

    def see_job(self, manifest: Mapping[str, Any]) -> JobView:
        """Take in a job; the newer of the known and the seen one stays."""
        seen = JobView(_slim(manifest))
        known = self._jobs.get(seen.key.uid)
        if known is None or _is_newer(seen.resource_version, known.resource_version):
            self._jobs[seen.key.uid] = seen
        return self._jobs[seen.key.uid]

    def forget_job(self, uid: str) -> None:
        self._jobs.pop(uid, None)

    def see_pod(self, manifest: Mapping[str, Any], now: datetime) -> str:
        """Take in a pod of ours; returns its job's uid."""
        seen = pod_facts(manifest)
        pods = self._pods.setdefault(seen.job_uid, {})
        known = pods.get(seen.uid)
        is_old = seen.uid in self._gone.get(seen.job_uid, {})
        if is_old or (known and not _is_newer(seen.resource_version, known.resource_version)):
            return seen.job_uid
        pods[seen.uid] = _with_end_seen(seen, known, now)
        return seen.job_uid

    def forget_pod(self, manifest: Mapping[str, Any], now: datetime) -> str:
        """Take in the last look at a deleted pod; returns its job's uid."""
        last = pod_facts(manifest)
        known = self._pods.get(last.job_uid, {}).pop(last.uid, None)
        last = _with_end_seen(last, known, now)
        self._gone.setdefault(last.job_uid, {})[last.uid] = last
        return last.job_uid

    def write_off(self, uid: str, pod_uids: Iterable[str]) -> None:
        """Forget deleted pods of a job: the ledger has them."""
        for pod_uid in pod_uids:
            self._gone.get(uid, {}).pop(pod_uid, None)

    def forget_all(self, uid: str) -> None:
        """Forget a job and its pods."""
        for known in (self._jobs, self._pods, self._gone):
            known.pop(uid, None)

    def pod_job_uids(self) -> set[str]:
        return set(self._pods)

    def replace_pods(self, uid: str, manifests: Iterable[Mapping[str, Any]], now: datetime) -> None:
        """Make a fresh list of a job's pods the truth; what vanished is gone without a word."""
        ours = [manifest for manifest in manifests if is_our_pod(manifest)]
        listed = {manifest["metadata"]["uid"] for manifest in ours}
        for manifest in ours:
            self.see_pod(manifest, now)
        self._pods[uid] = {
            pod_uid: pod for pod_uid, pod in self._pods.get(uid, {}).items() if pod_uid in listed
        }

    def drop_vanished(
        self, job_uids: set[str], pod_uids: set[str], resource_version: str
    ) -> set[str]:
        """Drop what a fresh list of everything lacks; returns the uids of the jobs concerned.

        What is newer than the list's resource version came after it, and stays.
        """
        concerned = {
            uid
            for uid, job in self._jobs.items()
            if uid not in job_uids and not _is_newer(job.resource_version, resource_version)
        }
        for job_uid, pods in self._pods.items():
            vanished = {
                uid
                for uid, pod in pods.items()
                if uid not in pod_uids and not _is_newer(pod.resource_version, resource_version)
            }
            for uid in vanished:
                del pods[uid]
            if vanished:
                concerned.add(job_uid)
        for uid in concerned - job_uids:
            self.forget_job(uid)
        return concerned


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
    return {"metadata": metadata, "spec": manifest["spec"], "status": manifest.get("status", {})}


def _with_end_seen(seen: PodFacts, known: PodFacts | None, now: datetime) -> PodFacts:
    if seen.trainer.exit_code is None:
        return seen
    since = known.trainer_end_seen_at if known else None
    return replace(seen, trainer_end_seen_at=since or now)


def _is_newer(one: str, other: str) -> bool:
    """Resource versions are integers that grow: https://kep.k8s.io/5504."""
    return int(one) > int(other)
