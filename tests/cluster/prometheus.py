"""A Prometheus on the host that scrapes a cluster's pods, and the operator."""

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import requests

from tests.cluster.controlplane import HOST_ADDRESS, free_port
from tests.cluster.images import REPOSITORY
from tests.cluster.packages import install
from tests.cluster.processes import end, start
from tests.cluster.waiting import wait_until

PROCESS = "prometheus"
PODS_PROCESS = "pod-targets"


def start_prometheus(state: Path, targets: Sequence[str], scrape_interval_seconds: int) -> str:
    """Start it and return its URL once it answers.

    Pods are scraped at their container port `metrics`, `targets` (host:port) as they are.
    """
    if shutil.which("prometheus") is None:
        install(["prometheus"])
    for name in (PROCESS, PODS_PROCESS):
        end(state, name)
    folder = state / "prometheus"
    folder.mkdir(exist_ok=True)
    pods = folder / "pods.json"
    _start_pod_targets(state, pods)
    config = folder / "prometheus.json"
    config.write_text(json.dumps(_config(pods, targets, scrape_interval_seconds), indent=1))
    address = f"{HOST_ADDRESS}:{free_port()}"
    command = [
        "prometheus",
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={address}",
    ]
    process = start(state, PROCESS, command)
    url = f"http://{address}"
    wait_until(lambda: _is_ready(url), "Prometheus", watched=[process])
    return url


def _start_pod_targets(state: Path, file: Path) -> None:
    command = [sys.executable, "-m", "tests.cluster.pod_targets", str(state), str(file)]
    start(state, PODS_PROCESS, command, env={"PYTHONPATH": str(REPOSITORY)})


def _config(pods: Path, targets: Sequence[str], scrape_interval_seconds: int) -> dict[str, Any]:
    interval = f"{scrape_interval_seconds}s"
    return {
        "global": {"scrape_interval": interval, "scrape_timeout": interval},
        "scrape_configs": [
            # With their own labels: the operator's samples carry the namespace of their job.
            {
                "job_name": "pods",
                "honor_labels": True,
                "file_sd_configs": [{"files": [str(pods)]}],
            },
            {
                "job_name": "operator",
                "honor_labels": True,
                "static_configs": [{"targets": list(targets)}],
            },
        ],
    }


def _is_ready(url: str) -> bool:
    try:
        return requests.get(f"{url}/-/ready", timeout=2).ok
    except (requests.ConnectionError, requests.Timeout):
        return False
