"""What NCCL reads lies in real pods where NCCL looks for it."""

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import pytest

from kopeck.topology.layouts import nd_h100_v5
from kopeck.topology.writer import to_xml
from tests.e2e.in_pods import log_of
from tests.e2e.jobs import a_small_training
from tests.platforms import OCI_CONF
from tests.waiting import eventually
from tests.workplace import Workplace

# Of the shape that the cluster's nodes have by their label.
PROVIDERS = "oci-nccl-parameters-kopeck-local"
DEFAULT_CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
READ = """
import hashlib, os
for file in os.environ["NCCL_TOPO_FILE"], "/etc/nccl.conf":
    print(file, hashlib.sha256(open(file, "rb").read()).hexdigest())
"""


@pytest.fixture
def providers_file(workplace: Workplace) -> Iterator[None]:
    config_map = {"metadata": {"name": PROVIDERS}, "data": {"nccl.conf": OCI_CONF}}
    workplace.kube.create(DEFAULT_CONFIG_MAPS, config_map)
    yield
    workplace.kube.delete(f"{DEFAULT_CONFIG_MAPS}/{PROVIDERS}")


def a_reading_job() -> dict[str, Any]:
    job = a_small_training("reading")
    spec = job["spec"]
    for field in ("entrypoint", "parameters", "training"):
        del spec[field]
    spec["command"] = ["python3", "-c", READ]
    spec["workers"]["gpusPerWorker"] = 1
    own = {"topology": "configMap", "topologyConfigMap": {"name": "mine"}}
    spec["nccl"] = own | {"platform": "oci"}
    return job


@pytest.mark.usefixtures("gpus", "providers_file")
def test_restricted_pods_find_the_topology_and_the_providers_file_at_their_paths(
    workplace: Workplace,
) -> None:
    topology = to_xml(nd_h100_v5())
    path = f"/api/v1/namespaces/{workplace.namespace}/configmaps"
    workplace.kube.create(path, {"metadata": {"name": "mine"}, "data": {"topology.xml": topology}})
    name = workplace.create(a_reading_job())

    def said() -> None:
        first = next(iter(workplace.pods(name)), None)
        assert first is not None, workplace.status(name)
        assert first["status"]["phase"] in ("Running", "Succeeded"), first["status"]
        log = log_of(workplace, first)
        assert f"/etc/kopeck/topology.xml {digest(topology)}" in log
        assert f"/etc/nccl.conf {digest(OCI_CONF)}" in log

    eventually(said, seconds=120)


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()
