"""What a kubelet would say of pods on nodes that do not exist."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tests.kube_client import KubeClient


def end_trainer(
    kube: KubeClient,
    pod: Mapping[str, Any],
    exit_code: int,
    report: Mapping[str, Any] | None = None,
    *,
    finished_at: str | None = None,
    phase: str | None = None,
) -> None:
    """Let a pod's trainer end, and its sidecar after it."""
    started_at = pod["status"]["startTime"]
    ended = {
        "exitCode": exit_code,
        "startedAt": started_at,
        "finishedAt": finished_at or _now(),
        "reason": "Completed" if exit_code == 0 else "Error",
    }
    said = {} if report is None else {"message": json.dumps(report)}
    sidecar = {"exitCode": 0, "startedAt": started_at, "finishedAt": ended["finishedAt"]}
    status = {
        "phase": phase or ("Succeeded" if exit_code == 0 else "Failed"),
        "containerStatuses": [_container("trainer", ended | said)],
        "initContainerStatuses": [_container("kopeck-exporter", sidecar)],
    }
    kube.patch(f"{path_of(pod)}/status", {"status": status})


def disrupt(kube: KubeClient, pod: Mapping[str, Any], reason: str) -> None:
    """Mark a pod as about to be ended by the cluster."""
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": reason,
        "lastTransitionTime": _now(),
    }
    conditions = [*pod["status"].get("conditions", []), condition]
    kube.patch(f"{path_of(pod)}/status", {"status": {"conditions": conditions}})


def path_of(pod: Mapping[str, Any]) -> str:
    metadata = pod["metadata"]
    return f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"


def _container(name: str, terminated: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "image": "localhost/kopeck:dev",
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "state": {"terminated": terminated},
    }


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
