"""What pods get on each platform, and what is said to be missing."""

from dataclasses import replace
from typing import Any

import pytest

from kopeck.topology.environment import pod_needs
from kopeck.topology.needs import ConfigMapMount, PodNeeds
from kopeck.topology.node import NodeFacts
from kopeck.topology.platform import Platform
from kopeck.topology.pod import PodView, pod_view

FILE = "/etc/kopeck/topology.xml"
EIGHT_GPUS = {"nvidia.com/gpu": "8"}


def a_node(instance_type: str = "", provider: str = "", **allocatable: str) -> NodeFacts:
    named = {name.replace("__", "/"): amount for name, amount in allocatable.items()}
    return NodeFacts(
        labels={"node.kubernetes.io/instance-type": instance_type} if instance_type else {},
        provider_id=f"{provider}://x" if provider else "",
        allocatable=EIGHT_GPUS | named,
    )


def efa_node(instance_type: str = "p5.48xlarge", efa: str = "32", **more: str) -> NodeFacts:
    node = a_node(instance_type, "aws", **more)
    return replace(node, allocatable={**node.allocatable, "vpc.amazonaws.com/efa": efa})


A_POD = PodView(gpus=8, resources=frozenset({"nvidia.com/gpu", "memory"}))
AZURE_H100 = a_node("Standard_ND96isr_H100_v5", "azure", rdma__ib="8")


def needs(node: NodeFacts, workers: int = 2, **pod: Any) -> PodNeeds:
    return pod_needs(node, replace(A_POD, **pod), workers=workers)


@pytest.mark.parametrize(
    ("node", "environment", "resources"),
    [
        (
            efa_node(**{"hugepages-2Mi": "10256Mi"}),
            {},
            {"vpc.amazonaws.com/efa": "32", "hugepages-2Mi": "5120Mi"},
        ),
        (efa_node("p4d.24xlarge", "4"), {}, {"vpc.amazonaws.com/efa": "4"}),
        (efa_node("g6.48xlarge", "1"), {}, {"vpc.amazonaws.com/efa": "1"}),
        (AZURE_H100, {"NCCL_TOPO_FILE": FILE}, {"rdma/ib": "8"}),
        (
            a_node("Standard_ND96amsr_A100_v4", "azure", rdma__shared_ib="1"),
            {"NCCL_TOPO_FILE": FILE},
            {"rdma/shared_ib": "1"},
        ),
        (
            a_node("Standard_ND96asr_v4", "azure", rdma__ib="8"),
            {"NCCL_TOPO_FILE": FILE},
            {"rdma/ib": "8"},
        ),
        (
            a_node("Standard_ND96isr_H200_v5", "azure", rdma__ib="1k"),
            {"NCCL_TOPO_FILE": FILE},
            {"rdma/ib": "1"},
        ),
        (a_node("Standard_NC80adis_H100_v5", "azure"), {}, {}),
        (a_node("Standard_NC96ads_A100_v4", "azure"), {}, {}),
        (a_node("Standard_ND128isr_NDR_GB200_v6", "azure", rdma__ib="4"), {}, {"rdma/ib": "4"}),
        (a_node("a3-megagpu-8g", "gce"), {}, {}),
        (a_node("a3-ultragpu-8g", "gce"), {}, {}),
        (a_node("BM.GPU.H100.8", "oci"), {}, {}),
        (a_node("gd-8xh100ib-i128", rdma__ib="1k"), {}, {"rdma/ib": "1"}),
        (a_node(rdma__hca_shared_devices_a="63"), {}, {"rdma/hca_shared_devices_a": "1"}),
        (a_node(rdma__ib="8"), {}, {"rdma/ib": "8"}),
        (a_node("g5.48xlarge", "aws"), {}, {}),
        (a_node(), {}, {}),
    ],
)
def test_each_platform_gets_what_its_pods_lose_and_nothing_else(
    node: NodeFacts, environment: dict[str, str], resources: dict[str, str]
) -> None:
    found = needs(node)
    assert found.environment == environment
    assert found.resources == resources


EFA_NODES = [
    efa_node(),
    efa_node("p4d.24xlarge", "4"),
    efa_node("p6e-gb200.36xlarge", "17"),
    efa_node("g5.48xlarge", "1"),
    a_node("p5.48xlarge", "aws"),
]


@pytest.mark.parametrize("node", EFA_NODES)
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("gpus", [1, 8])
def test_a_topology_file_is_never_named_on_efa(node: NodeFacts, workers: int, gpus: int) -> None:
    found = needs(node, workers, gpus=gpus)
    assert "NCCL_TOPO_FILE" not in found.environment
    assert any("OFI plugin" in note for note in found.notes)


@pytest.mark.parametrize("gpus", [1, 2, 4, 8])
def test_a_pod_takes_the_part_of_the_devices_that_it_takes_of_the_gpus(gpus: int) -> None:
    huge = {"hugepages-2Mi": "10256Mi"}
    assert needs(efa_node(**huge), gpus=gpus).resources == {
        "vpc.amazonaws.com/efa": str(4 * gpus),
        "hugepages-2Mi": f"{640 * gpus}Mi",
    }
    assert needs(AZURE_H100, gpus=gpus).resources == {"rdma/ib": str(gpus)}


def test_a_pod_asks_for_one_device_at_least_and_for_no_more_than_the_node_has() -> None:
    assert needs(efa_node(efa="4"), gpus=1).resources == {"vpc.amazonaws.com/efa": "1"}
    unlabelled = replace(efa_node(), allocatable={"vpc.amazonaws.com/efa": "4"})
    assert needs(unlabelled, gpus=8).resources == {"vpc.amazonaws.com/efa": "4"}
    small = {"hugepages-2Mi": "256Mi"}
    assert needs(efa_node(**small), gpus=8).resources["hugepages-2Mi"] == "256Mi"


def test_huge_pages_come_beside_cpu_or_memory_only() -> None:
    found = needs(efa_node(**{"hugepages-2Mi": "10Gi"}), resources=frozenset())
    assert "hugepages-2Mi" not in found.resources
    assert any("huge pages" in note for note in found.notes)


@pytest.mark.parametrize(
    ("node", "taken"),
    [
        (efa_node(**{"hugepages-2Mi": "10Gi"}), {"vpc.amazonaws.com/efa", "hugepages-2Mi"}),
        (AZURE_H100, {"rdma/ib"}),
        (AZURE_H100, {"rdma/other"}),
    ],
)
def test_what_the_user_requests_is_not_added_to(node: NodeFacts, taken: set[str]) -> None:
    assert not needs(node, resources=frozenset(taken | {"memory"})).resources


def test_the_claim_of_a_compute_domain_takes_the_place_of_no_efa_interface() -> None:
    node = efa_node("p6e-gb200.36xlarge", "17")
    assert needs(node, claims=1).resources == {"vpc.amazonaws.com/efa": "17"}


def test_the_users_topology_file_wins() -> None:
    for own in ("/mine.xml", ""):
        assert not needs(AZURE_H100, environment={"NCCL_TOPO_FILE": own}).environment


def test_the_users_nccl_conf_wins_on_oci() -> None:
    shape = a_node("BM.GPU.H100.8", "oci")
    (mount,) = needs(shape).config_maps
    assert isinstance(mount, ConfigMapMount)
    assert (mount.namespace, mount.name) == ("default", "oci-nccl-parameters-bm-gpu-h100-8")
    assert (mount.key, mount.path) == ("nccl.conf", "/etc/nccl.conf")
    assert not needs(shape, mount_paths=frozenset({"/etc/nccl.conf"})).config_maps


@pytest.mark.parametrize("node", [*EFA_NODES, AZURE_H100, a_node("BM.GPU.H100.8", "oci")])
def test_one_worker_asks_for_no_fabric(node: NodeFacts) -> None:
    found = needs(node, workers=1)
    assert (found.resources, found.config_maps, found.missing) == ({}, [], [])


def test_pods_without_gpus_need_nothing() -> None:
    for node in (efa_node(), AZURE_H100, a_node("a3-megagpu-8g", "gce")):
        found = needs(node, gpus=0)
        assert (found.environment, found.resources, found.missing) == ({}, {}, [])


@pytest.mark.parametrize(
    ("node", "pod", "sentences"),
    [
        (a_node("p5.48xlarge", "aws"), {}, ["no vpc.amazonaws.com/efa"]),
        (a_node("p5.48xlarge", "aws"), {"claims": 1}, []),
        (efa_node("p6e-gb200.36xlarge"), {}, ["claims no ComputeDomain"]),
        (efa_node("p6e-gb200.36xlarge"), {"claims": 1}, []),
        (a_node("Standard_ND96isr_H100_v5", "azure"), {}, ["no resource under rdma/"]),
        (a_node("Standard_ND96isr_H100_v5", "azure"), {"is_on_host_network": True}, []),
        (a_node(rdma__a="8", rdma__b="8"), {}, ["rdma/a and rdma/b"]),
        (a_node(rdma__a="8", rdma__b="8"), {"resources": frozenset({"rdma/a"})}, []),
        (
            a_node("a3-megagpu-8g", "gce"),
            {},
            [
                "no container tcpxo-daemon",
                "annotation devices.gke.io/container.tcpxo-daemon",
                "nothing at /dev/aperture_devices",
                "nothing at /usr/local/nvidia",
                "annotation networking.gke.io/interfaces",
            ],
        ),
        (
            a_node("a3-megagpu-8g", "gce"),
            {
                "containers": frozenset({"trainer", "tcpxo-daemon"}),
                "annotations": frozenset(
                    {"devices.gke.io/container.tcpxo-daemon", "networking.gke.io/interfaces"}
                ),
                "mount_paths": frozenset({"/usr/local/nvidia/lib64", "/dev/aperture_devices"}),
            },
            [],
        ),
        (
            a_node("a3-ultragpu-8g", "gce"),
            {},
            ["nothing at /usr/local/gib", "annotation networking.gke.io/interfaces"],
        ),
        (
            a_node("a4-highgpu-8g", "gce"),
            {
                "annotations": frozenset({"networking.gke.io/interfaces"}),
                "mount_paths": frozenset({"/usr/local/gib/"}),
            },
            [],
        ),
        (
            a_node("a4x-highgpu-4g", "gce"),
            {
                "annotations": frozenset({"networking.gke.io/interfaces"}),
                "mount_paths": frozenset({"/usr/local/gib"}),
            },
            ["claims no ComputeDomain"],
        ),
        (a_node("a4x-highgpu-4g", "gce"), {"mount_paths": frozenset({"/usr"}), "claims": 2}, []),
        (
            a_node("a4x-highgpu-4g", "gce"),
            {"mount_paths": frozenset({"/usr"}), "claims": 1},
            ["annotation networking.gke.io/interfaces"],
        ),
        (a_node("p6e-gb200.36xlarge", "aws"), {"claims": 1}, ["no vpc.amazonaws.com/efa"]),
        (a_node("BM.GPU.GB200.4", "oci"), {}, ["claims no ComputeDomain"]),
        (a_node("BM.GPU.H100.8", "oci"), {}, []),
        (a_node("Standard_NC80adis_H100_v5", "azure"), {}, []),
        (a_node(), {}, []),
    ],
)
def test_what_is_missing_is_named(
    node: NodeFacts, pod: dict[str, Any], sentences: list[str]
) -> None:
    missing = needs(node, **pod).missing
    assert len(missing) == len(sentences)
    for said, sentence in zip(missing, sentences, strict=True):
        assert sentence in said


def test_the_file_is_of_the_nodes_instance_type() -> None:
    (file,) = needs(AZURE_H100).topology_files
    assert "Standard_ND96isr_H100_v5" in file.instance_type.names
    assert file.instance_type.machine is not None


def test_no_file_of_the_library_comes_where_the_user_wants_none() -> None:
    found = pod_needs(AZURE_H100, A_POD, workers=2, brings_topology=False)
    assert (found.environment, found.resources) == ({}, {"rdma/ib": "8"})
    assert any("spec.nccl.topology is not auto" in note for note in found.notes)


def test_the_users_word_on_the_platform_takes_the_place_of_what_labels_say() -> None:
    box = a_node("Standard_ND96isr_H100_v5", rdma__ib="8", rdma__more="8")
    said = pod_needs(box, A_POD, workers=2, platform=Platform.OTHER)
    assert (said.environment, said.resources, said.missing) == ({}, {}, [])
    assert (said.platform.platform, said.platform.reason) == ("other", "spec.nccl.platform")
    unlabelled = replace(efa_node(), labels={}, provider_id="")
    found = pod_needs(unlabelled, A_POD, workers=2, platform=Platform.RDMA)
    assert "vpc.amazonaws.com/efa" not in found.resources


@pytest.mark.parametrize(
    ("node", "is_told"),
    [
        (a_node(), True),
        (AZURE_H100, True),
        (a_node("g5.48xlarge", "aws"), False),
        (efa_node(), False),
        (a_node("g2-standard-96", "gce"), False),
        (a_node("a3-megagpu-8g", "gce"), False),
    ],
)
def test_the_launcher_chooses_the_interface_where_no_plugin_does(
    node: NodeFacts, *, is_told: bool
) -> None:
    assert any("NCCL_SOCKET_IFNAME" in note for note in needs(node).notes) == is_told


def test_two_pods_on_a_node_are_advised_against() -> None:
    assert any("one pod for each node" in note for note in needs(a_node(), gpus=4).notes)
    assert not any("one pod for each node" in note for note in needs(a_node(), gpus=8).notes)


def test_a_pod_is_viewed_as_its_manifest_has_it() -> None:
    trainer = {
        "name": "trainer",
        "env": [
            {"name": "NCCL_DEBUG", "value": "INFO"},
            {"name": "SECRET", "valueFrom": {"secretKeyRef": {}}},
        ],
        "resources": {
            "requests": {"memory": "1Gi"},
            "limits": {"nvidia.com/gpu": 8},
            "claims": [{"name": "domain"}],
        },
        "volumeMounts": [{"name": "gib", "mountPath": "/usr/local/gib"}],
    }
    view = pod_view(
        {
            "metadata": {"annotations": {"networking.gke.io/interfaces": "[]"}},
            "spec": {
                "hostNetwork": True,
                "resourceClaims": [{"name": "domain", "resourceClaimTemplateName": "domain"}],
                "initContainers": [{"name": "tcpxo-daemon"}],
                "containers": [{"name": "other"}, trainer],
            },
        }
    )
    assert view == PodView(
        gpus=8,
        environment={"NCCL_DEBUG": "INFO", "SECRET": ""},
        resources=frozenset({"memory", "nvidia.com/gpu"}),
        mount_paths=frozenset({"/usr/local/gib"}),
        annotations=frozenset({"networking.gke.io/interfaces"}),
        containers=frozenset({"tcpxo-daemon", "other", "trainer"}),
        claims=1,
        is_on_host_network=True,
    )


def test_a_bare_pod_has_nothing() -> None:
    assert pod_view({"metadata": {}, "spec": {"containers": [{"name": "trainer"}]}}) == PodView(
        containers=frozenset({"trainer"})
    )


@pytest.mark.parametrize(
    "trainer",
    [
        {"env": {"NCCL_DEBUG": "INFO"}, "volumeMounts": "no list", "resources": []},
        {"env": [7, {"value": "x"}], "volumeMounts": [None], "resources": {"limits": [1]}},
        {"resources": {"limits": {"nvidia.com/gpu": "many"}, "claims": "domain"}},
    ],
)
def test_what_the_api_server_will_refuse_does_not_stop_the_view(trainer: dict[str, Any]) -> None:
    spec = {"containers": [{"name": "trainer"} | trainer], "initContainers": 7}
    view = pod_view({"metadata": {"annotations": ["no", "map"]}, "spec": spec})
    assert (view.gpus, view.claims, view.annotations) == (0, 0, frozenset())


@pytest.mark.parametrize(
    ("mounted", "covers"),
    [("/usr/local/gib", True), ("/usr/local/gib/", True), ("/", True), ("/usr/local/gi", False)],
)
def test_a_mount_covers_what_lies_in_it(mounted: str, *, covers: bool) -> None:
    path = "/usr/local/gib/scripts/set_nccl_env.sh"
    assert PodView(mount_paths=frozenset({mounted})).mounts(path) == covers
