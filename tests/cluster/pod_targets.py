"""Keeps a file of the pods that Prometheus should scrape: `python -m tests.cluster.pod_targets`.

Debian's Prometheus is built without the discovery of pods, but it reads files.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from time import sleep
from typing import Any

from tests.cluster.record import read

PORT_NAME = "metrics"
REFRESH_SECONDS = 1.0
RUNNING_PODS = "/api/v1/pods?fieldSelector=status.phase%3DRunning&resourceVersion=0"


def pod_targets(pods: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The container ports named `metrics`, native sidecars' too, as Prometheus reads targets."""
    return [
        {
            "targets": [f"{pod['status']['podIP']}:{port}"],
            "labels": {
                "namespace": pod["metadata"]["namespace"],
                "pod": pod["metadata"]["name"],
            },
        }
        for pod in pods
        if pod["status"].get("podIP")
        for port in _metrics_ports(pod["spec"])
    ]


def _metrics_ports(spec: dict[str, Any]) -> Iterator[int]:
    for container in [*spec.get("initContainers", []), *spec["containers"]]:
        for port in container.get("ports", []):
            if port.get("name") == PORT_NAME:
                yield port["containerPort"]


def main(state: Path, file: Path) -> None:
    """Write the file anew whenever the pods have changed, for as long as the cluster is there."""
    written = None
    while (record := read(state)) and record.endpoint:
        answer = record.endpoint.get(RUNNING_PODS)
        if answer is not None and answer.ok:
            targets = pod_targets(answer.json()["items"])
            if targets != written:
                unfinished = file.with_suffix(".unfinished")
                unfinished.write_text(json.dumps(targets))
                unfinished.rename(file)
                written = targets
        sleep(REFRESH_SECONDS)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
