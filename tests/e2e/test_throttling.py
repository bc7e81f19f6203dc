"""A CPU limit that bites: what Prometheus says of it is what the kernel counted."""

from pathlib import Path
from typing import Any

import pytest

from tests.asking import queried
from tests.cluster.cgroups import MOUNT
from tests.e2e.conftest import Installation
from tests.e2e.jobs import the_example
from tests.waiting import eventually
from tests.workplace import Workplace

_LIMIT = "250m"
_PROGRAM = """
import time
end = time.monotonic() + 15
while time.monotonic() < end:
    pass
print("idle from now on", flush=True)
time.sleep(600)
"""
_METRICS = {
    "kopeck_cpu_throttled_seconds_total": "throttled_seconds",
    "kopeck_cpu_periods_total": "nr_periods",
    "kopeck_cpu_throttled_periods_total": "nr_throttled",
}


def a_job_that_needs_a_whole_cpu() -> dict[str, Any]:
    """A program that is busy for a while, so that its counts then stand still."""
    job = the_example()
    job["metadata"] = {"name": "busy"}
    spec = job["spec"]
    for field in ("entrypoint", "parameters", "training"):
        del spec[field]
    spec["command"], spec["args"] = ["python3", "-c"], [_PROGRAM]
    spec["workers"]["replicas"] = 1
    spec["workers"]["resources"] = {
        "requests": {"cpu": _LIMIT, "memory": "1Gi"},
        "limits": {"cpu": _LIMIT, "memory": "1Gi"},
    }
    return job


def test_throttled_seconds_are_the_kernels_own_to_two_percent(
    installation: Installation, workplace: Workplace
) -> None:
    name = workplace.create(a_job_that_needs_a_whole_cpu())
    [pod] = workplace.running_pods(name, attempt=0, count=1, seconds=120)
    [status] = pod["status"]["containerStatuses"]
    folder = group_of(status["containerID"].rpartition("//")[2])
    started = counts_in(folder)["nr_periods"]

    def counted() -> None:
        kernel = counts_in(folder)
        shown = {metric: asked(installation, workplace, metric) for metric in _METRICS}
        assert kernel["nr_periods"] > started + 100, "it has not been busy for long enough"
        assert kernel["throttled_seconds"] > 1  # of 11 on a quiet machine
        for metric, count in _METRICS.items():
            assert shown[metric] == pytest.approx(kernel[count], rel=0.02), metric

    eventually(counted, seconds=120)


def group_of(container: str) -> Path:
    """The folder of a container's CPU group, wherever its node keeps it."""
    found = [file.parent for file in MOUNT.glob(f"**/*{container}*/cpu.stat")]
    with_periods = [folder for folder in found if "nr_periods" in counts_in(folder)]
    assert with_periods, f"no group of container {container}"
    return with_periods[0]


def counts_in(folder: Path) -> dict[str, float]:
    lines = (line.split() for line in (folder / "cpu.stat").read_text().splitlines())
    counts: dict[str, float] = {key: int(value) for key, value in lines}
    for key, unit in (("throttled_time", 10**9), ("throttled_usec", 10**6)):
        if key in counts:
            counts["throttled_seconds"] = counts[key] / unit
    return counts


def asked(installation: Installation, workplace: Workplace, metric: str) -> float:
    query = f'{metric}{{namespace="{workplace.namespace}",training_job="busy"}}'
    results = queried(installation.prometheus_url, query)
    assert len(results) == 1, f"{metric}: {len(results)} series"
    return float(results[0]["value"][1])
