"""One cluster of two real nodes for all end-to-end tests; a namespace under restricted security."""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cluster import ClusterError, LocalCluster
from tests.kube_client import KubeClient
from tests.operator_process import OperatorProcess
from tests.workplace import Workplace

_SCRAPE_SECONDS = 1


@dataclass
class Installation:
    """A cluster with kopeck in it."""

    cluster: LocalCluster
    operator: OperatorProcess
    prometheus_url: str


@pytest.fixture(scope="session")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    try:
        cluster = LocalCluster.start(tmp_path_factory.mktemp("cluster"), nodes=2)
    except ClusterError as missing:
        pytest.skip(str(missing))
    with cluster:
        cluster.kubectl("apply", "--filename=crds/")
        cluster.kubectl("wait", "--for=condition=Established", "crd/trainingjobs.kopeck.dev")
        with OperatorProcess(cluster.kubeconfig, tmp_path_factory.mktemp("operator")) as operator:
            operator.wait_until_in_sync()
            prometheus_url = cluster.start_prometheus(
                targets=[operator.url.removeprefix("http://")],
                scrape_interval_seconds=_SCRAPE_SECONDS,
            )
            yield Installation(cluster, operator, prometheus_url)


@pytest.fixture
def workplace(installation: Installation) -> Iterator[Workplace]:
    cluster = installation.cluster
    namespace = f"test-{secrets.token_hex(3)}"
    cluster.kubectl("create", "namespace", namespace)
    enforced = "pod-security.kubernetes.io/enforce=restricted"
    cluster.kubectl("label", "namespace", namespace, enforced)
    cluster.provide_volumes(namespace)
    yield Workplace(cluster, KubeClient(Path(cluster.kubeconfig)), namespace)
    cluster.kubectl("delete", "trainingjobs", "--all", "--namespace", namespace)
    cluster.kubectl("delete", "namespace", namespace, "--wait=false")
