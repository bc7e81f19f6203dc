"""One control plane with KWOK nodes for all integration tests, a namespace for each."""

import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster import ExistingCluster, LocalCluster, MissingError
from tests.cluster.definitions import wait_until_served
from tests.kube_client import KubeClient
from tests.operator_process import OperatorProcess
from tests.workplace import Workplace

_NODE_CAPACITY = {"cpu": "32", "memory": "128Gi", "pods": "1000"}
_NODE_LABELS = {"node.kubernetes.io/instance-type": "kopeck.local"}


@pytest.fixture(scope="package")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """An API server, the controllers and the scheduler; KWOK stands in for the kubelets."""
    try:
        cluster = LocalCluster.start(tmp_path_factory.mktemp("cluster"), nodes=0, kwok=True)
    except MissingError as missing:
        pytest.skip(str(missing))
    with cluster:
        cluster.create_fake_nodes(4, labels=_NODE_LABELS, capacity=_NODE_CAPACITY)
        cluster.create_fake_nodes(1, capacity=_NODE_CAPACITY, prefix="unpriced")
        cluster.kubectl("label", "node", "unpriced-0", "priced=no")
        cluster.kubectl("taint", "node", "unpriced-0", "priced=no:NoSchedule")
        install_crd(cluster)
        yield cluster


def install_crd(cluster: LocalCluster | ExistingCluster) -> None:
    cluster.kubectl("apply", "--filename=crds/")
    wait_until_served(cluster.kubectl, "trainingjobs.kopeck.dev")


@pytest.fixture(scope="package")
def kube(control_plane: Any) -> KubeClient:
    return KubeClient(control_plane.kubeconfig)


@pytest.fixture
def workplace(control_plane: Any, kube: KubeClient) -> Iterator[Workplace]:
    """A namespace of the test's own."""
    namespace = f"test-{secrets.token_hex(3)}"
    control_plane.kubectl("create", "namespace", namespace)
    yield Workplace(control_plane, kube, namespace)
    control_plane.kubectl("delete", "namespace", namespace, "--wait=false")


@pytest.fixture(scope="module")
def operator(
    control_plane: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OperatorProcess]:
    """One operator for the tests of a file; those that harm theirs start their own."""
    folder = tmp_path_factory.mktemp("operator")
    with OperatorProcess(control_plane.kubeconfig, folder) as process:
        process.wait_until_in_sync()
        yield process
