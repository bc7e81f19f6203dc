"""Each sidecar of a job with GPUs asks the DCGM exporter on its own node."""

import secrets
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.cluster import LocalCluster
from tests.e2e.conftest import Installation
from tests.e2e.jobs import a_small_training
from tests.waiting import eventually
from tests.workplace import Workplace

PAGE = 'DCGM_FI_PROF_SM_ACTIVE{gpu="0",UUID="GPU-0"} 0.5\n'
PORT = 9400


def a_dcgm_exporter(node: str) -> dict[str, Any]:
    """A page in DCGM's place, at the address of its node and no other."""
    address = {"name": "NODE_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"dcgm-{node}"},
        "spec": {
            "nodeName": node,
            "hostNetwork": True,
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {
                    "name": "dcgm",
                    "image": "localhost/kopeck:dev",
                    "command": ["python3", "-u", "-m", "http.server", str(PORT)],
                    "args": ["--bind=$(NODE_IP)", "--directory=/page"],
                    "env": [address],
                    "volumeMounts": [{"name": "page", "mountPath": "/page"}],
                }
            ],
            "volumes": [{"name": "page", "configMap": {"name": "page"}}],
        },
    }


@pytest.fixture
def dcgm(installation: Installation) -> Iterator[str]:
    """The namespace of one on each node."""
    cluster, name = installation.cluster, f"dcgm-{secrets.token_hex(3)}"
    cluster.kubectl("create", "namespace", name)
    cluster.kubectl("create", "configmap", "page", f"--from-literal=metrics={PAGE}", "-n", name)
    for node in cluster.nodes:
        manifest = yaml.safe_dump(a_dcgm_exporter(node))
        eventually(lambda manifest=manifest: is_applied(cluster, name, manifest))
    cluster.kubectl("wait", "pod", "--all", "--for=condition=Ready", "--timeout=60s", "-n", name)
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


def is_applied(cluster: LocalCluster, namespace: str, manifest: str) -> None:
    """Not before the namespace has its service account."""
    accounts = cluster.kubectl("get", "serviceaccounts", "-n", namespace, "--output=name")
    assert "serviceaccount/default" in accounts
    cluster.kubectl("apply", "-n", namespace, "--filename=-", stdin=manifest)


def a_job_with_gpus() -> dict[str, Any]:
    job = a_small_training("with-gpus")
    spec = job["spec"]
    for field in ("entrypoint", "parameters", "training"):
        del spec[field]
    spec["command"] = ["sleep", "600"]
    spec["workers"]["gpusPerWorker"] = 1
    return job


@pytest.mark.usefixtures("gpus")
def test_the_dcgm_exporter_of_each_pods_own_node_is_asked_and_answers(
    installation: Installation, workplace: Workplace, dcgm: str
) -> None:
    name = workplace.create(a_job_with_gpus())
    pods = workplace.running_pods(name, attempt=0, count=2, seconds=120)
    assert {pod["spec"]["nodeName"] for pod in pods} == set(installation.cluster.nodes)

    def asked_by_its_neighbour_alone() -> None:
        for pod in pods:
            log = installation.cluster.kubectl(
                "logs", f"dcgm-{pod['spec']['nodeName']}", "-n", dcgm
            )
            asked = [line.split()[0] for line in log.splitlines() if "GET /metrics" in line]
            assert set(asked) == {pod["status"]["podIP"]}, log
            assert '"GET /metrics HTTP/1.1" 200' in log

    eventually(asked_by_its_neighbour_alone, seconds=60)
