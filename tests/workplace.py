"""A namespace of a cluster, and short names for what tests do in it."""

import json
from dataclasses import dataclass
from typing import Any

from tests.kube_client import KubeClient
from tests.waiting import DEADLINE_SECONDS, eventually


def jobs_path(namespace: str) -> str:
    return f"/apis/kopeck.dev/v1alpha1/namespaces/{namespace}/trainingjobs"


def ledger_path(uid: str) -> str:
    return f"/api/v1/namespaces/kopeck-system/configmaps/kopeck-ledger-{uid}"


@dataclass
class Workplace:
    """One namespace; `cluster` is whatever serves it."""

    cluster: Any
    kube: KubeClient
    namespace: str

    @property
    def jobs_path(self) -> str:
        return jobs_path(self.namespace)

    def create(self, job: dict[str, Any]) -> str:
        """Create a TrainingJob; its name."""
        created = self.kube.create(self.jobs_path, job)
        name: str = created["metadata"]["name"]
        return name

    def job(self, name: str) -> dict[str, Any]:
        found = self.kube.get(f"{self.jobs_path}/{name}")
        assert found is not None
        return found

    def status(self, name: str) -> dict[str, Any]:
        status: dict[str, Any] = self.job(name).get("status", {})
        return status

    def condition(self, name: str, kind: str) -> dict[str, Any]:
        found = [each for each in self.status(name).get("conditions", []) if each["type"] == kind]
        assert found, self.status(name)
        return found[0]

    def pods(self, name: str, attempt: int | None = None) -> list[dict[str, Any]]:
        selector = f"kopeck.dev/job={name}"
        if attempt is not None:
            selector += f",kopeck.dev/attempt={attempt}"
        pods = self.kube.list(f"/api/v1/namespaces/{self.namespace}/pods", selector)
        return sorted(pods, key=lambda pod: int(pod["metadata"]["labels"]["kopeck.dev/worker"]))

    def running_pods(
        self, name: str, attempt: int, count: int, *, seconds: float = DEADLINE_SECONDS
    ) -> list[dict[str, Any]]:
        """The pods of an attempt once all of them run."""

        def run() -> list[dict[str, Any]]:
            pods = self.pods(name, attempt)
            assert len(pods) == count, self.status(name)
            assert all(pod["status"].get("phase") == "Running" for pod in pods)
            assert self.status(name).get("phase") == "Running", self.status(name)
            return pods

        return eventually(run, seconds=seconds)

    def reaches(
        self, name: str, phase: str, *, seconds: float = DEADLINE_SECONDS
    ) -> dict[str, Any]:
        """The status once the job is in a phase."""

        def there() -> dict[str, Any]:
            status = self.status(name)
            assert status.get("phase") == phase, status
            return status

        return eventually(there, seconds=seconds)

    def end_startup(self, name: str) -> None:
        """Let a job that does not start reach its deadline, and so fail."""
        deadline = {"spec": {"runPolicy": {"startupDeadlineSeconds": 1}}}
        self.kube.patch(f"{self.jobs_path}/{name}", deadline)
        self.reaches(name, "Failed")

    def ledger(self, name: str) -> dict[str, Any]:
        return self.ledger_of(self.job(name)["metadata"]["uid"])

    def ledger_of(self, uid: str) -> dict[str, Any]:
        """The ledger of a job that may be gone."""
        found = self.kube.get(ledger_path(uid))
        assert found is not None
        ledger: dict[str, Any] = json.loads(found["data"]["ledger.json"])
        return ledger
