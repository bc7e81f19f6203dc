"""Many jobs at once: each of them costs the API server as much as a single one."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bench.api_requests import api_requests, writes
from tests.bench.fake_training import LABELS, fake_training
from tests.bench.watching import WatchingClient, is_settled
from tests.builders import a_job
from tests.operator_process import OperatorProcess
from tests.workplace import Workplace

JOBS = 20
PODS_PER_JOB = 4
# Accepted, starting, running, complete, and what the last pods cost; some passes see two at once.
MOST_STATUS_WRITES = 6
# The above; four pods made and told their rate; Service, revision; ledger thrice; four events.
MOST_WRITES = 24


@pytest.fixture
def trainings_end(control_plane: Any) -> Iterator[None]:
    """Let KWOK complete pods that carry LABELS."""
    stage = json.dumps(fake_training())
    control_plane.kubectl("create", "--filename=-", stdin=stage)
    yield
    control_plane.kubectl("delete", "--filename=-", stdin=stage)


@pytest.mark.usefixtures("trainings_end")
def test_jobs_that_are_created_at_once_all_complete_in_a_bounded_number_of_requests_each(
    workplace: Workplace, tmp_path: Path
) -> None:
    template = {"metadata": {"labels": LABELS}}
    workers = {"replicas": PODS_PER_JOB, "template": template}
    kubeconfig = workplace.cluster.kubeconfig
    with OperatorProcess(kubeconfig, tmp_path, refresh_seconds=60) as operator:
        operator.wait_until_in_sync()
        for number in range(JOBS):
            workplace.create(a_job(f"job-{number}", workers=workers))
        wait_until_settled(WatchingClient(kubeconfig), workplace.jobs_path)
        requests = api_requests(operator.metrics())
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
