"""One cluster of two real nodes for all end-to-end tests; a namespace under restricted security."""

import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.chart import NAMESPACE, VALUES, install
from tests.cluster import LocalCluster, MissingError
from tests.e2e.wall_time import phases_are_wall_time
from tests.kube_client import KubeClient
from tests.workplace import Workplace

_SCRAPE_SECONDS = 1
CONFIG = {"dcgmEndpoint": "http://$(NODE_IP):9400/metrics"}


@dataclass
class Installation:
    """A cluster with kopeck in it, as its chart installs it."""

    cluster: LocalCluster
    prometheus_url: str


@pytest.fixture(scope="package")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    try:
        cluster = LocalCluster.start(tmp_path_factory.mktemp("cluster"), nodes=2)
    except MissingError as missing:
        pytest.skip(str(missing))
    with cluster:
        cluster.provide_operator_image()
        create_restricted_namespace(cluster, NAMESPACE)
        install(cluster.kubeconfig, VALUES | {"config": VALUES["config"] | CONFIG})
        yield Installation(
            cluster, cluster.start_prometheus(scrape_interval_seconds=_SCRAPE_SECONDS)
        )


def create_restricted_namespace(cluster: LocalCluster, name: str) -> None:
    cluster.kubectl("create", "namespace", name)
    enforced = "pod-security.kubernetes.io/enforce=restricted"
    cluster.kubectl("label", "namespace", name, enforced)


@pytest.fixture
def workplace(installation: Installation) -> Iterator[Workplace]:
    cluster = installation.cluster
    namespace = f"test-{secrets.token_hex(3)}"
    create_restricted_namespace(cluster, namespace)
    cluster.provide_volumes(namespace)
    with phases_are_wall_time(cluster, installation.prometheus_url, namespace):
        yield Workplace(cluster, KubeClient(Path(cluster.kubeconfig)), namespace)
        cluster.kubectl("delete", "trainingjobs", "--all", "--namespace", namespace)
    cluster.kubectl("delete", "namespace", namespace, "--wait=false")


@pytest.fixture
def gpus(installation: Installation) -> Iterator[None]:
    """A GPU that is not there on each node, and an operator that forgets it afterwards."""
    cluster = installation.cluster
    advertise(installation, "1")
    yield
    advertise(installation, None)
    # It keeps the highest number of GPUs that a node had, by which pods are charged.
    cluster.kubectl("rollout", "restart", "deployment/kopeck", f"--namespace={NAMESPACE}")
    cluster.kubectl("rollout", "status", "deployment/kopeck", f"--namespace={NAMESPACE}")


def advertise(installation: Installation, count: str | None) -> None:
    amounts = {"nvidia.com/gpu": count}
    patch = json.dumps({"status": {"capacity": amounts, "allocatable": amounts}})
    installation.cluster.kubectl(
        "patch", "node", *installation.cluster.nodes, "--subresource=status", f"--patch={patch}"
    )
