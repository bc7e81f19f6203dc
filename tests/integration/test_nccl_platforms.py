"""A TrainingJob's pods get what NCCL needs on the nodes that they may get, and nothing else."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import pytest

from kopeck.api.quantities import parse_quantity
from kopeck.topology.layouts import nd_a100_v4, nd_h100_v5
from kopeck.topology.writer import to_xml
from tests.kube_client import KubeClient
from tests.operator_process import OperatorProcess
from tests.platforms import (
    CHOSEN,
    OCI_CONF,
    PLATFORMS,
    OnPlatform,
    a_job_on,
    create_nodes,
    create_providers_config_map,
)
from tests.waiting import eventually
from tests.workplace import Workplace

ON = {each.name: each for each in PLATFORMS}
AWS, AZURE = ON["aws-p5"], ON["azure-nd-h100-v5"]
UNKNOWN = OnPlatform(name="box", platform="other", instance_type="box")
# Beside those of one platform, nodes of two that the same label selects.
DIFFERING = {"pool": "mixed"}
FILES = {
    "azure-nd-a100-v4": {"topology.xml": to_xml(nd_a100_v4())},
    "azure-nd-h100-v5": {"topology.xml": to_xml(nd_h100_v5())},
    "oci-h100": {"nccl.conf": OCI_CONF},
}


@pytest.fixture(scope="module")
def gpu_nodes(control_plane: Any, kube: KubeClient) -> Iterator[None]:
    """Two nodes of each platform, and one more of two of them."""
    create_providers_config_map(kube)
    names = [name for on in (*PLATFORMS, UNKNOWN) for name in create_nodes(control_plane, on)]
    for on in (AWS, AZURE):
        names += create_nodes(control_plane, on, 1, **DIFFERING)
    yield
    control_plane.kubectl("delete", "node", *names)


@pytest.fixture(scope="module")
def operator(
    control_plane: Any, gpu_nodes: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OperatorProcess]:
    """One operator that first looks when all nodes are there."""
    with OperatorProcess(control_plane.kubeconfig, tmp_path_factory.mktemp("operator")) as process:
        process.wait_until_in_sync()
        yield process


@pytest.fixture
def restricted(workplace: Workplace) -> Workplace:
    """A namespace whose pods must meet the restricted standard."""
    level = "pod-security.kubernetes.io/enforce=restricted"
    workplace.cluster.kubectl("label", "namespace", workplace.namespace, level)
    return workplace


def trainer(pod: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = pod["spec"]["containers"][0]
    return found


def limits(pod: dict[str, Any]) -> dict[str, Decimal]:
    return amounts(trainer(pod)["resources"]["limits"])


def amounts(quantities: Mapping[str, str]) -> dict[str, Decimal]:
    """As numbers: the API server writes 5120Mi as 5Gi."""
    return {name: parse_quantity(amount) for name, amount in quantities.items()}


def nccl_variables(pod: dict[str, Any]) -> dict[str, str]:
    """All that is not kopeck's own."""
    return {
        each["name"]: each["value"]
        for each in trainer(pod)["env"]
        if not each["name"].startswith("KOPECK_")
    }


def mounted_files(workplace: Workplace, pod: dict[str, Any]) -> dict[str, str]:
    """What the pod mounts of ConfigMaps beside its revision, by the file's name."""
    sources = [
        source["configMap"]
        for volume in pod["spec"]["volumes"]
        for source in [volume, *volume.get("projected", {}).get("sources", [])]
        if "configMap" in source
    ]
    found = {}
    for source in sources:
        for item in source.get("items", []):
            path = f"/api/v1/namespaces/{workplace.namespace}/configmaps/{source['name']}"
            config_map = workplace.kube.get(path)
            assert config_map["immutable"] is True
            assert config_map["metadata"]["ownerReferences"][0]["kind"] == "TrainingJob"
            found[item["path"]] = config_map["data"][item["key"]]
    return found


def is_decided(workplace: Workplace, name: str) -> dict[str, Any]:
    nccl: dict[str, Any] | None = workplace.status(name).get("effective", {}).get("nccl")
    assert nccl is not None, workplace.status(name)
    return nccl


@pytest.mark.usefixtures("operator")
@pytest.mark.parametrize("on", PLATFORMS, ids=lambda on: on.name)
def test_pods_get_exactly_what_their_platform_needs(restricted: Workplace, on: OnPlatform) -> None:
    name = restricted.create(a_job_on({CHOSEN: on.name}))
    for pod in restricted.running_pods(name, attempt=0, count=2):
        assert nccl_variables(pod) == on.environment
        assert limits(pod) == amounts({"nvidia.com/gpu": "8"} | dict(on.resources))
        assert mounted_files(restricted, pod) == FILES.get(on.name, {})
        assert set(FILES.get(on.name, {})) == set(on.files)
        paths = {each["mountPath"] for each in trainer(pod)["volumeMounts"]}
        assert ("/etc/nccl.conf" in paths) == ("nccl.conf" in on.files)
    assert is_decided(restricted, name)["platform"] == on.platform
    known = restricted.condition(name, "PlatformKnown")
    assert known["status"] == "True"
    assert known["reason"] == ("FabricIncomplete" if on.missing else "Known")
    assert all(words in known["message"] for words in on.missing)


@pytest.mark.usefixtures("operator")
@pytest.mark.parametrize(
    ("selected", "reason", "sentence"),
    [
        (DIFFERING, "NodesDiffer", "select one kind of node in nodeSelector"),
        ({"pool": "nowhere"}, "NoNode", "no node that suits the pods offers 8 nvidia.com/gpu"),
        ({CHOSEN: UNKNOWN.name}, "UnknownPlatform", "set spec.nccl.platform"),
    ],
)
def test_where_the_platform_is_not_known_nothing_is_added_and_the_user_is_told(
    restricted: Workplace, selected: dict[str, str], reason: str, sentence: str
) -> None:
    name = restricted.create(a_job_on(selected))

    def there() -> list[dict[str, Any]]:
        pods = restricted.pods(name)
        assert len(pods) == 2, restricted.status(name)
        return pods

    for pod in eventually(there):
        assert nccl_variables(pod) == {}
        assert limits(pod) == amounts({"nvidia.com/gpu": "8"})
        assert mounted_files(restricted, pod) == {}
    known = restricted.condition(name, "PlatformKnown")
    assert (known["status"], known["reason"]) == ("False", reason)
    assert sentence in known["message"]

    def told() -> None:
        events = restricted.kube.list(f"/api/v1/namespaces/{restricted.namespace}/events")
        assert [each["type"] for each in events if each["reason"] == reason] == ["Warning"]

    eventually(told)


@pytest.mark.usefixtures("operator")
def test_a_topology_file_of_the_users_is_checked_before_any_pod_and_then_copied(
    restricted: Workplace,
) -> None:
    own = {"topology": "configMap", "topologyConfigMap": {"name": "mine", "key": "nodes.xml"}}
    name = restricted.create(a_job_on({CHOSEN: "hgx"}, **own))
    config_maps = f"/api/v1/namespaces/{restricted.namespace}/configmaps"
    eventually(lambda: waits_for_topology(restricted, name, "there is no ConfigMap mine"))
    text = to_xml(nd_h100_v5())
    broken = {"metadata": {"name": "mine"}, "data": {"nodes.xml": f'<?xml version="1.0"?>{text}'}}
    restricted.kube.create(config_maps, broken)
    eventually(lambda: waits_for_topology(restricted, name, "mine/nodes.xml, line 1: "))
    assert restricted.pods(name) == []
    restricted.kube.patch(f"{config_maps}/mine", {"data": {"nodes.xml": text}})
    for pod in restricted.running_pods(name, attempt=0, count=2):
        assert nccl_variables(pod) == {"NCCL_TOPO_FILE": "/etc/kopeck/topology.xml"}
        assert trainer(pod)["resources"]["limits"]["rdma/hca"] == "8"
        assert mounted_files(restricted, pod) == {"topology.xml": text}


def waits_for_topology(workplace: Workplace, name: str, sentence: str) -> None:
    running = workplace.condition(name, "Running")
    assert running["reason"] == "InvalidTopology", running
    assert sentence in running["message"]


@pytest.mark.usefixtures("operator")
def test_a_decision_whose_config_map_is_refused_is_none(restricted: Workplace) -> None:
    quotas = f"/api/v1/namespaces/{restricted.namespace}/resourcequotas"
    quota = {"metadata": {"name": "few"}, "spec": {"hard": {"count/configmaps": "1"}}}
    restricted.kube.create(quotas, quota)

    def is_counted() -> None:
        used = restricted.kube.get(f"{quotas}/few")["status"].get("used")
        assert used == {"count/configmaps": "1"}  # every namespace has one, of the cluster's CA

    eventually(is_counted)
    name = restricted.create(a_job_on({CHOSEN: AZURE.name}))

    def is_refused() -> None:
        running = restricted.condition(name, "Running")
        assert running["reason"] == "Refused"
        assert "exceeded quota: few" in running["message"]

    eventually(is_refused)
    assert "nccl" not in restricted.status(name)["effective"]
    assert restricted.pods(name) == []
    restricted.kube.patch(f"{quotas}/few", {"spec": {"hard": {"count/configmaps": "9"}}})
    restricted.running_pods(name, attempt=0, count=2)
