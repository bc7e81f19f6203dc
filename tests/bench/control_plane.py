"""How much an operator costs its cluster: jobs created at once, run by KWOK nodes, completed.

Standard output ends with one JSON line; progress goes to standard error.
"""

import json
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tests.bench.api_requests import api_requests, writes
from tests.bench.fake_training import LABELS, fake_training
from tests.bench.process_usage import cpu_seconds, peak_memory_bytes
from tests.bench.watching import WatchingClient, is_settled
from tests.builders import a_job
from tests.cluster import ClusterError, LocalCluster
from tests.cluster.definitions import wait_until_served
from tests.kube_client import KubeClient
from tests.operator_process import OperatorProcess
from tests.waiting import eventually

JOBS = 200
PODS_PER_JOB = 4
_NAMESPACE = "bench"
_JOBS_PATH = f"/apis/kopeck.dev/v1alpha1/namespaces/{_NAMESPACE}/trainingjobs"
_PODS_PATH = f"/api/v1/namespaces/{_NAMESPACE}/pods"
_CONNECTIONS = 4
_NODES = 8
_NODE_CAPACITY = {"cpu": "128", "memory": "1Ti", "pods": "1000"}
_NODE_LABELS = {"node.kubernetes.io/instance-type": "kopeck.local"}
_A_HANG_SECONDS = 600


@dataclass(frozen=True)
class Reached:
    """When the jobs had come so far, in seconds since the first was created."""

    all_created_seconds: float
    all_complete_seconds: float


def main() -> int:
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
    )
    try:
        with TemporaryDirectory() as folder, progress:
            ours = _measure(Path(folder), progress)
    except ClusterError as missing:
        print(missing, file=sys.stderr)
        return 1
    print(json.dumps({"bench": "control-plane", "ours": ours, "peer": {}, "bars": {}}))
    return 0


def _measure(folder: Path, progress: Progress) -> dict[str, Any]:
    with LocalCluster.start(folder / "cluster", nodes=0, kwok=True) as cluster:
        _prepare(cluster)
        with OperatorProcess(cluster.kubeconfig, folder, refresh_seconds=60) as operator:
            operator.wait_until_in_sync()
            idle_cpu_seconds = cpu_seconds(operator.pid)
            idle_requests = api_requests(operator.metrics())
            reached = _run_jobs(cluster.kubeconfig, progress)
            requests = api_requests(operator.metrics()) - idle_requests
            return _figures(
                reached,
                requests,
                cpu_seconds(operator.pid) - idle_cpu_seconds,
                peak_memory_bytes(operator.pid),
            )


def _prepare(cluster: LocalCluster) -> None:
    cluster.create_fake_nodes(_NODES, labels=_NODE_LABELS, capacity=_NODE_CAPACITY)
    cluster.kubectl("create", "--filename=-", stdin=json.dumps(fake_training()))
    cluster.kubectl("create", "--filename=crds/")
    wait_until_served(cluster.kubectl, "trainingjobs.kopeck.dev")
    cluster.kubectl("create", "namespace", _NAMESPACE)


def _run_jobs(kubeconfig: Path, progress: Progress) -> Reached:
    """Create all jobs at once and wait until none of them holds anything any more."""
    jobs = [a_fake_job(number) for number in range(JOBS)]
    slices = [jobs[first::_CONNECTIONS] for first in range(_CONNECTIONS)]
    creators = [KubeClient(kubeconfig) for _ in slices]
    counter, watcher = KubeClient(kubeconfig), WatchingClient(kubeconfig)
    started = monotonic()
    with ThreadPoolExecutor(_CONNECTIONS + 2) as pool:
        created = pool.submit(_wait_for_pods, counter, progress, started)
        complete = pool.submit(_wait_for_jobs, watcher, progress, started)
        list(pool.map(_create, creators, slices))
        return Reached(created.result(), complete.result())


def a_fake_job(number: int) -> dict[str, Any]:
    """A job of which no pod has a kubelet."""
    template = {"metadata": {"labels": LABELS}}
    return a_job(f"job-{number}", workers={"replicas": PODS_PER_JOB, "template": template})


def _create(kube: KubeClient, jobs: Sequence[dict[str, Any]]) -> None:
    for job in jobs:
        kube.create(_JOBS_PATH, job)


def _wait_for_pods(kube: KubeClient, progress: Progress, started: float) -> float:
    """Seconds until all pods exist; a list of one pod says how many more there are."""
    task = progress.add_task("Pods created", total=JOBS * PODS_PER_JOB)

    def all_there() -> float:
        listed = kube.get(f"{_PODS_PATH}?limit=1")
        count = len(listed["items"]) + listed["metadata"].get("remainingItemCount", 0)
        progress.update(task, completed=count)
        assert count == JOBS * PODS_PER_JOB
        return monotonic() - started

    return eventually(all_there, seconds=_A_HANG_SECONDS)


def _wait_for_jobs(kube: WatchingClient, progress: Progress, started: float) -> float:
    """Seconds until all jobs are complete; returns once their last status is written."""
    task = progress.add_task("Jobs complete", total=JOBS)
    complete: set[str] = set()
    settled: set[str] = set()
    complete_seconds = 0.0
    for job in kube.watch(_JOBS_PATH, "status.phase=Complete"):
        name = job["metadata"]["name"]
        if name not in complete:
            complete.add(name)
            complete_seconds = monotonic() - started
            progress.update(task, completed=len(complete))
        if is_settled(job):
            settled.add(name)
        if len(settled) == JOBS:
            break
    return complete_seconds


def _figures(
    reached: Reached, requests: Counter[str], used_cpu_seconds: float, memory_bytes: int
) -> dict[str, Any]:
    pods = JOBS * PODS_PER_JOB
    return {
        "jobs": JOBS,
        "pods": pods,
        "seconds_to_all_created": round(reached.all_created_seconds, 2),
        "pods_per_second_to_all_created": round(pods / reached.all_created_seconds, 1),
        "seconds_to_all_complete": round(reached.all_complete_seconds, 2),
        "requests_per_job": {
            named: round(count / JOBS, 2) for named, count in sorted(requests.items())
        },
        "writes_per_job": round(writes(requests) / JOBS, 2),
        "operator_cpu_seconds_per_job": round(used_cpu_seconds / JOBS, 4),
        "operator_memory_peak_bytes": memory_bytes,
    }


if __name__ == "__main__":
    sys.exit(main())
