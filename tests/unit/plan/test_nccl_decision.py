"""What the pods of an attempt get on each platform, and when they get nothing."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from kopeck.api.nccl import NcclSpec
from kopeck.plan.candidate_nodes import GpuNode, gpu_node
from kopeck.plan.job_view import JobView
from kopeck.plan.nccl_decision import (
    NcclDecision,
    Surroundings,
    agreement_on,
    awaits_decision,
    config_maps_to_read,
    nccl_decision,
)
from kopeck.plan.own_topology import TopologyFileError
from kopeck.topology.check import check, violations
from kopeck.topology.layouts import nd_a100_v4, nd_h100_v5
from kopeck.topology.platform import Platform
from kopeck.topology.writer import to_xml
from tests.builders import a_job_view, facts_of
from tests.platforms import OCI_CONF, OCI_CONF_NAME, PLATFORMS, OnPlatform, node_manifest

ON = {each.name: each for each in PLATFORMS}
OCI_MAP = ("default", OCI_CONF_NAME)
EFFECTIVE = {"revision": "r", "workers": 2}
OWN_TOPOLOGY = to_xml(nd_a100_v4())


def a_gpu_job(workers: int = 2, nccl: Any = None, **template: Any) -> JobView:
    status = {"effective": EFFECTIVE | {"workers": workers}}
    spec = {
        "replicas": workers,
        "gpusPerWorker": 8,
        "resources": {"requests": {"memory": "1Gi"}},
        "template": {"spec": template},
    }
    return a_job_view(status, workers=spec, nccl=nccl or {}, training={"globalBatchSize": 64})


def nodes_of(*platforms: OnPlatform) -> list[GpuNode]:
    found = [gpu_node(node_manifest(on, f"node-{n}")) for n, on in enumerate(platforms)]
    return [node for node in found if node]


def decided(
    job: JobView,
    nodes: Sequence[GpuNode],
    config_maps: Mapping[tuple[str, str], Mapping[str, str]] | None = None,
) -> NcclDecision:
    """The decision after reading just those ConfigMaps that are asked for."""
    there = config_maps or {OCI_MAP: {"nccl.conf": OCI_CONF}}
    agreement = agreement_on(job, nodes)
    read = {each: there.get(each) for each in config_maps_to_read(job, agreement)}
    return nccl_decision(job, Surroundings(agreement, read))


@pytest.mark.parametrize("on", PLATFORMS, ids=lambda on: on.name)
def test_each_platform_gets_exactly_what_its_pods_lose(on: OnPlatform) -> None:
    decision = decided(a_gpu_job(), nodes_of(on, on))
    effective = decision.effective
    assert decision.is_platform_known
    assert effective.platform == on.platform
    assert effective.environment == on.environment
    assert effective.resources == on.resources
    assert effective.files == list(on.files)
    assert (decision.config_map is None) == (not on.files)
    assert decision.reason == ("FabricIncomplete" if on.missing else "Known")
    assert all(words in decision.message for words in on.missing), decision.message
    assert ("Missing" in decision.message) == bool(on.missing)


@pytest.mark.parametrize("on", [on for on in PLATFORMS if on.platform == "aws-efa"])
@pytest.mark.parametrize("workers", [1, 2])
def test_on_efa_no_topology_file_is_named(on: OnPlatform, workers: int) -> None:
    effective = decided(a_gpu_job(workers), nodes_of(on)).effective
    assert "NCCL_TOPO_FILE" not in effective.environment
    assert effective.files == []


def test_the_topology_file_is_that_of_the_nodes_and_passes_its_own_check() -> None:
    config_map = decided(a_gpu_job(), nodes_of(ON["azure-nd-h100-v5"])).config_map
    assert config_map is not None
    content = config_map["data"]["topology.xml"]
    assert content == to_xml(nd_h100_v5())
    assert violations(check(content.encode())) == []


def test_the_config_map_is_the_jobs_own_and_named_by_what_it_holds() -> None:
    one, same, other = (
        decided(a_gpu_job(), nodes_of(ON[name]))
        for name in ("azure-nd-h100-v5", "azure-nd-h100-v5", "azure-nd-a100-v4")
    )
    assert one == same
    assert one.config_map is not None
    assert other.config_map is not None
    metadata = one.config_map["metadata"]
    assert metadata["name"] == one.effective.config_map
    assert metadata["name"].startswith("job-abcde-nccl-")
    assert metadata["name"] != other.config_map["metadata"]["name"]
    assert metadata["ownerReferences"][0]["uid"] == "abcdef"
    assert one.config_map["immutable"] is True


def test_the_providers_file_is_copied_word_for_word() -> None:
    config_map = decided(a_gpu_job(), nodes_of(ON["oci-h100"])).config_map
    assert config_map is not None
    assert config_map["data"] == {"nccl.conf": OCI_CONF}


@pytest.mark.parametrize("there", [{OCI_MAP: {"other": ""}}, {("default", "other"): {}}])
def test_a_providers_file_that_is_not_there_is_missed(there: Any) -> None:
    decision = decided(a_gpu_job(), nodes_of(ON["oci-h100"]), there)
    assert decision.config_map is None
    assert decision.effective.files == []
    assert f"no ConfigMap default/{OCI_CONF_NAME} with the key nccl.conf" in decision.message


@pytest.mark.parametrize("name", ["aws-p5", "oci-h100", "coreweave", "hgx", "gcp-a3-mega"])
def test_one_worker_reaches_no_other_node_and_asks_for_no_fabric(name: str) -> None:
    decision = decided(a_gpu_job(workers=1), nodes_of(ON[name]))
    assert (decision.effective.resources, decision.config_map) == ({}, None)
    assert decision.reason == "Known"


def test_one_worker_on_a_mixed_cluster_needs_the_same_everywhere() -> None:
    decision = decided(a_gpu_job(workers=1), nodes_of(ON["aws-p5"], ON["hgx"]))
    assert decision.is_platform_known
    assert decision.effective.platform is None
    assert decision.message.startswith("aws-efa and rdma, by ")


BROKEN = OnPlatform(name="", platform="", instance_type="p5.48xlarge", provider_id="aws:///x/i")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (ON["aws-p5"], ON["azure-nd-h100-v5"]),
        (ON["azure-nd-a100-v4"], ON["azure-nd-h100-v5"]),
        (ON["aws-p5"], BROKEN),
        (ON["coreweave"], ON["hgx"]),
    ],
)
def test_where_nodes_need_different_things_nothing_is_rendered_and_both_are_named(
    one: OnPlatform, other: OnPlatform
) -> None:
    decision = decided(a_gpu_job(), nodes_of(one, one, other))
    assert not decision.is_platform_known
    assert decision.reason == "NodesDiffer"
    assert "node-0 (" in decision.message
    assert "node-2 (" in decision.message
    assert decision.message.endswith("nodeSelector of spec.workers.template")
    assert decision.effective.model_dump(exclude_defaults=True) == {}
    assert decision.config_map is None


def test_the_nodes_that_the_template_selects_are_asked_alone() -> None:
    job = a_gpu_job(nodeSelector={"node.kubernetes.io/instance-type": "p5.48xlarge"})
    decision = decided(job, nodes_of(ON["hgx"], ON["aws-p5"], ON["azure-nd-h100-v5"]))
    assert decision.effective.resources == ON["aws-p5"].resources


@pytest.mark.parametrize("nodes", [[], nodes_of(ON["hgx"])])
def test_without_a_node_that_suits_nothing_is_rendered(nodes: list[GpuNode]) -> None:
    decision = decided(a_gpu_job(nodeSelector={"pool": "none"}), nodes)
    assert decision.reason == "NoNode"
    assert decision.message.startswith("no node that suits the pods offers 8 nvidia.com/gpu")
    assert decision.effective.model_dump(exclude_defaults=True) == {}


def test_a_node_of_which_no_rule_knows_is_named() -> None:
    box = OnPlatform(name="", platform="other", instance_type="box")
    decision = decided(a_gpu_job(), nodes_of(box))
    assert (decision.is_platform_known, decision.reason) == (False, "UnknownPlatform")
    assert "no cloud is known by providerID, labels or instance type" in decision.message
    assert "set spec.nccl.platform" in decision.message
    assert decided(a_gpu_job(workers=1), nodes_of(box)).is_platform_known
    assert decided(a_gpu_job(nccl={"platform": "other"}), nodes_of(box)).is_platform_known


def test_the_users_platform_holds_whatever_the_nodes_say() -> None:
    job = a_gpu_job(nccl={"platform": "other"})
    for on in PLATFORMS:
        decision = decided(job, nodes_of(on))
        assert decision.effective.platform == "other"
        assert decision.effective.resources == {}
        assert decision.config_map is None
    rdma = a_gpu_job(nccl={"platform": "rdma"})
    assert decided(rdma, nodes_of(ON["hgx"])).effective.resources == {"rdma/hca": "8"}


def test_every_platform_can_be_named_by_the_user() -> None:
    for platform in Platform:
        assert NcclSpec(platform=platform.value).platform == platform


def test_no_topology_comes_where_the_user_wants_none() -> None:
    job = a_gpu_job(nccl={"topology": "none"})
    effective = decided(job, nodes_of(ON["azure-nd-h100-v5"])).effective
    assert (effective.environment, effective.files) == ({}, [])
    assert effective.resources == {"rdma/shared_ib": "1"}


OWN = {"topology": "configMap", "topologyConfigMap": {"name": "mine"}}
MINE = ("default", "mine")


@pytest.mark.parametrize(
    "nodes", [[], nodes_of(ON["hgx"]), nodes_of(ON["azure-nd-h100-v5"]), nodes_of(ON["aws-p5"])]
)
def test_the_users_own_file_is_copied_whatever_the_nodes(nodes: list[GpuNode]) -> None:
    decision = decided(a_gpu_job(nccl=OWN), nodes, {MINE: {"topology.xml": OWN_TOPOLOGY}})
    assert decision.config_map is not None
    assert decision.config_map["data"] == {"topology.xml": OWN_TOPOLOGY}
    assert decision.effective.environment == {"NCCL_TOPO_FILE": "/etc/kopeck/topology.xml"}


@pytest.mark.parametrize(
    ("there", "sentence"),
    [
        ({MINE: {}}, "ConfigMap mine has no key topology.xml; write the file there"),
        ({MINE: {"a.xml": "", "b": ""}}, "has no key topology.xml; use one of its keys: a.xml, b"),
        ({OCI_MAP: {}}, "there is no ConfigMap mine in the job's namespace; create it"),
        (
            {MINE: {"topology.xml": '<?xml version="1.0"?>\n' + OWN_TOPOLOGY}},
            "mine/topology.xml, line 1: ",
        ),
        ({MINE: {"topology.xml": OWN_TOPOLOGY.replace(" PCIe", "")}}, "line 3: "),
        ({MINE: {"topology.xml": ""}}, "line 1: "),
    ],
)
def test_a_file_that_would_stop_nccl_stops_the_job_before_any_pod(
    there: Any, sentence: str
) -> None:
    with pytest.raises(TopologyFileError) as refused:
        decided(a_gpu_job(nccl=OWN), nodes_of(ON["hgx"]), there)
    assert str(refused.value).startswith("spec.nccl.topologyConfigMap: ")
    assert sentence in str(refused.value)


def test_the_users_variables_are_left_to_the_user() -> None:
    job = a_gpu_job(nccl={"env": {"NCCL_TOPO_FILE": "/mine.xml"}})
    effective = decided(job, nodes_of(ON["azure-nd-h100-v5"])).effective
    assert (effective.environment, effective.files) == ({}, [])


@pytest.mark.parametrize(
    "status",
    [
        {"effective": None},
        {"effective": EFFECTIVE | {"nccl": {}}},
        {"effective": EFFECTIVE | {"populated": True}},
        {"phase": "Failed"},
    ],
)
def test_a_decision_is_taken_once_for_each_attempt(status: dict[str, Any]) -> None:
    job = a_gpu_job()
    assert awaits_decision(job, [])
    over = {"effective": EFFECTIVE} | status
    assert not awaits_decision(JobView({**job.manifest, "status": over}), [])


def test_a_decision_waits_for_the_end_of_the_old_pods() -> None:
    status = {"effective": EFFECTIVE, "attempt": 1}
    job = JobView({**a_gpu_job().manifest, "status": status})
    assert not awaits_decision(job, [facts_of(0, attempt=0)])
    assert awaits_decision(job, [facts_of(0, attempt=1)])


@pytest.mark.parametrize(
    "workers", [{}, {"gpusPerWorker": 8, "gpuResource": "amd.com/gpu"}, {"replicas": "many"}]
)
def test_a_job_that_does_not_use_nccl_needs_nothing(workers: dict[str, Any]) -> None:
    assert not awaits_decision(a_job_view({"effective": EFFECTIVE}, workers=workers), [])
