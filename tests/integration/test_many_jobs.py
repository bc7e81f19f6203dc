"""Many jobs at once: each of them costs the API server as much as a single one."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bench.api_requests import api_requests, writes
from tests.bench.fake_training import LABELS, fake_training
from tests.bench.process_usage import peak_memory_bytes
from tests.bench.watching import WatchingClient, is_settled
from tests.builders import a_job
from tests.operator_process import OperatorProcess
from tests.workplace import Workplace

JOBS = 200
PODS_PER_JOB = 4
# Accepted, starting, running, complete, and what the last pods cost; some passes see two at once.
MOST_STATUS_WRITES = 6
# The above; four pods made and told their rate; Service, revision; ledger thrice; four events.
MOST_WRITES = 24
# What the chart requests for the operator's container: 256Mi.
MOST_MEMORY_BYTES = 256 * 2**20


@pytest.fixture
def trainings_end(control_plane: Any) -> Iterator[None]:
    """Let KWOK complete pods that carry LABELS."""
    stage = json.dumps(fake_training())
    control_plane.kubectl("create", "--filename=-", stdin=stage)
    yield
    control_plane.kubectl("delete", "--filename=-", stdin=stage)


@pytest.fixture
def pool(control_plane: Any, workplace: Workplace) -> Iterator[dict[str, str]]:
    """Labels of nodes that hold all pods at once. They leave no work to the tests after this."""
    labels = {"pool": "many-jobs"}
    nodes = control_plane.create_fake_nodes(
        4,
        prefix="many-jobs",
        labels=labels | {"node.kubernetes.io/instance-type": "kopeck.local"},
        capacity={"cpu": "256", "memory": "1Ti", "pods": "1000"},
    )
    yield labels
    pods = workplace.kube.request("DELETE", f"/api/v1/namespaces/{workplace.namespace}/pods")
    assert pods.status_code == 200, pods.text
    control_plane.kubectl("delete", "node", *nodes)


@pytest.mark.usefixtures("trainings_end")
def test_jobs_that_are_created_at_once_all_complete_in_bounded_memory_and_requests_each(
    workplace: Workplace,
    pool: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    template = {"metadata": {"labels": LABELS}, "spec": {"nodeSelector": pool}}
    workers = {"replicas": PODS_PER_JOB, "template": template}
    kubeconfig = workplace.cluster.kubeconfig
    with OperatorProcess(kubeconfig, tmp_path, refresh_seconds=60) as operator:
        operator.wait_until_in_sync()
        for number in range(JOBS):
            workplace.create(a_job(f"job-{number}", workers=workers))
        wait_until_settled(WatchingClient(kubeconfig), workplace.jobs_path)
        requests = api_requests(operator.metrics())
        memory_bytes = peak_memory_bytes(operator.pid)
    figures = {
        "jobs": JOBS,
        "pods": PODS_PER_JOB * JOBS,
        "requests_per_job": {named: count / JOBS for named, count in sorted(requests.items())},
        "writes_per_job": writes(requests) / JOBS,
        "operator_memory_peak_bytes": memory_bytes,
    }
    with capsys.disabled():
        sys.stdout.write(f"\n{json.dumps(figures)}\n")
    assert memory_bytes <= MOST_MEMORY_BYTES
    assert requests["post:pods"] == PODS_PER_JOB * JOBS
    assert requests["patch:services"] == JOBS
    assert requests["patch:trainingjobs"] <= MOST_STATUS_WRITES * JOBS
    assert writes(requests) <= MOST_WRITES * JOBS


def wait_until_settled(kube: WatchingClient, jobs_path: str) -> None:
    settled: set[str] = set()
    for job in kube.watch(jobs_path, "status.phase=Complete"):
        if is_settled(job):
            settled.add(job["metadata"]["name"])
        if len(settled) == JOBS:
            return
