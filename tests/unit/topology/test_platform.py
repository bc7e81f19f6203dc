"""What a node is found to be, by labels, provider id, instance type and resources."""

import pytest

from kopeck.topology.node import NodeFacts, node_facts, node_of_type
from kopeck.topology.platform import Cloud, Platform, platform_of

TYPE = "node.kubernetes.io/instance-type"


def a_node(
    instance_type: str = "",
    provider_id: str = "",
    allocatable: dict[str, str] | None = None,
    **labels: str,
) -> NodeFacts:
    named = {TYPE: instance_type} if instance_type else {}
    return NodeFacts(labels=named | labels, provider_id=provider_id, allocatable=allocatable or {})


AWS, AZURE, GCE = "aws:///us-east-1a/i-0123", "azure:///subscriptions/s/vm/0", "gce://p/z/name"
EFA = {"vpc.amazonaws.com/efa": "4"}


@pytest.mark.parametrize(
    ("node", "cloud", "platform"),
    [
        (a_node("p5.48xlarge", AWS, EFA), Cloud.AWS, Platform.AWS_EFA),
        (a_node("g6.48xlarge", AWS, EFA), Cloud.AWS, Platform.AWS_EFA),
        (a_node("p5en.48xlarge", AWS), Cloud.AWS, Platform.AWS_EFA),
        (a_node("p6-b200.48xlarge", AWS), Cloud.AWS, Platform.AWS_EFA),
        (a_node("g6.48xlarge", AWS), Cloud.AWS, Platform.OTHER),
        (a_node("g5.xlarge", AWS, {"vpc.amazonaws.com/efa": "0"}), Cloud.AWS, Platform.OTHER),
        (a_node("p3.2xlarge", AWS), Cloud.AWS, Platform.OTHER),
        (a_node("", AWS), Cloud.AWS, Platform.OTHER),
        (a_node("Standard_ND96asr_v4", AZURE), Cloud.AZURE, Platform.AZURE_ND),
        (a_node("Standard_ND96amsr_A100_v4", AZURE), Cloud.AZURE, Platform.AZURE_ND),
        (a_node("Standard_ND96isr_H100_v5", AZURE), Cloud.AZURE, Platform.AZURE_ND),
        (a_node("standard_nd96isr_h200_v5", AZURE), Cloud.AZURE, Platform.AZURE_ND),
        (a_node("Standard_NC80adis_H100_v5", AZURE), Cloud.AZURE, Platform.AZURE_NC),
        (a_node("Standard_D8s_v5", AZURE), Cloud.AZURE, Platform.OTHER),
        (a_node("Standard_HB176rs_v4", AZURE, {"rdma/ib": "1"}), Cloud.AZURE, Platform.RDMA),
        (a_node("a3-megagpu-8g", GCE), Cloud.GCP, Platform.GCP_TCPXO),
        (a_node("a3-ultragpu-8g", GCE), Cloud.GCP, Platform.GCP_GIB),
        (a_node("a4-highgpu-8g", GCE), Cloud.GCP, Platform.GCP_GIB),
        (a_node("a3-highgpu-8g", GCE), Cloud.GCP, Platform.OTHER),
        (a_node("g2-standard-96", GCE), Cloud.GCP, Platform.OTHER),
        (a_node("BM.GPU.H100.8", "oci://ocid1.instance.oc1.iad.x"), Cloud.OCI, Platform.OCI),
        (a_node("BM.GPU4.8", "ocid1.instance.oc1.iad.x"), Cloud.OCI, Platform.OCI),
        (a_node("VM.Standard.E4.Flex", "ocid1.instance.oc1.iad.x"), Cloud.OCI, Platform.OTHER),
        (a_node("", "", {"rdma/hca_shared_devices_a": "63"}), Cloud.NONE, Platform.RDMA),
        (a_node("", "kind://docker/kind/n", {"rdma/ib": "8"}), Cloud.NONE, Platform.RDMA),
        (a_node("", "", EFA), Cloud.AWS, Platform.AWS_EFA),
        (
            a_node(**{"cloud.google.com/gke-accelerator": "nvidia-h100-mega-80gb"}),
            Cloud.GCP,
            Platform.GCP_TCPXO,
        ),
        (
            a_node(**{"cloud.google.com/gke-accelerator": "nvidia-b200"}),
            Cloud.GCP,
            Platform.GCP_GIB,
        ),
        (
            a_node(**{"cloud.google.com/gke-accelerator": "nvidia-l4"}),
            Cloud.GCP,
            Platform.OTHER,
        ),
        (a_node("", "", {"rdma/ib": "0"}), Cloud.NONE, Platform.OTHER),
        (a_node(), Cloud.NONE, Platform.OTHER),
    ],
)
def test_a_node_is_what_its_provider_and_type_say(
    node: NodeFacts, cloud: Cloud, platform: Platform
) -> None:
    found = platform_of(node)
    assert (found.cloud, found.platform) == (cloud, platform)
    assert found.reason


@pytest.mark.parametrize(
    ("label", "cloud"),
    [
        ("eks.amazonaws.com/nodegroup", Cloud.AWS),
        ("karpenter.k8s.aws/instance-family", Cloud.AWS),
        ("kubernetes.azure.com/agentpool", Cloud.AZURE),
        ("cloud.google.com/gke-nodepool", Cloud.GCP),
        ("oci.oraclecloud.com/fault-domain", Cloud.OCI),
        ("node.coreweave.cloud/class", Cloud.COREWEAVE),
        ("example.com/eks.amazonaws.com", Cloud.NONE),
    ],
)
def test_without_a_provider_id_the_labels_of_managed_pools_tell_the_cloud(
    label: str, cloud: Cloud
) -> None:
    assert platform_of(NodeFacts(labels={label: "x"})).cloud == cloud


@pytest.mark.parametrize(
    ("instance_type", "cloud", "platform"),
    [
        ("p4d.24xlarge", Cloud.AWS, Platform.AWS_EFA),
        ("c7i.metal-24xl", Cloud.AWS, Platform.OTHER),
        ("Standard_ND96isr_H100_v5", Cloud.AZURE, Platform.AZURE_ND),
        ("a3-megagpu-8g", Cloud.GCP, Platform.GCP_TCPXO),
        ("BM.GPU.H100.8", Cloud.OCI, Platform.OCI),
        ("gd-8xh100ib-i128", Cloud.COREWEAVE, Platform.COREWEAVE),
        ("dgx-h100", Cloud.NONE, Platform.OTHER),
        ("", Cloud.NONE, Platform.OTHER),
    ],
)
def test_an_instance_type_alone_tells_both(
    instance_type: str, cloud: Cloud, platform: Platform
) -> None:
    found = platform_of(node_of_type(instance_type))
    assert (found.cloud, found.platform) == (cloud, platform)


def test_what_the_provider_says_beats_a_type_that_looks_like_anothers() -> None:
    assert platform_of(a_node("p5.48xlarge", AZURE)).platform == Platform.OTHER


def test_coreweave_is_known_by_its_labels_whatever_its_provider_id() -> None:
    labels = {"node.coreweave.cloud/class": "gpu"}
    found = platform_of(NodeFacts(labels=labels, provider_id="aws:///x"))
    assert found.platform == Platform.COREWEAVE


def test_a_node_whose_rdma_modules_are_loaded_has_rdma_before_it_has_a_device_plugin() -> None:
    labels = {"feature.node.kubernetes.io/rdma.available": "true"}
    assert platform_of(NodeFacts(labels=labels)).platform == Platform.RDMA


@pytest.mark.parametrize(
    ("node", "platform"),
    [
        (a_node("p6e-gb200.36xlarge", AWS), Platform.AWS_EFA),
        (a_node("Standard_ND128isr_NDR_GB200_v6", AZURE), Platform.AZURE_ND),
        (a_node("a4x-highgpu-4g", GCE), Platform.GCP_GIB),
        (a_node("BM.GPU.GB200.4", "ocid1.instance"), Platform.OCI),
        (a_node("gb300-4x"), Platform.COREWEAVE),
        (a_node("", **{"nvidia.com/gpu.product": "NVIDIA-GB200"}), Platform.OTHER),
        (
            a_node("", **{"kubernetes.io/arch": "arm64", "nvidia.com/gpu.clique": "c.1"}),
            Platform.OTHER,
        ),
    ],
)
def test_multi_node_nvlink_comes_beside_any_fabric(node: NodeFacts, platform: Platform) -> None:
    found = platform_of(node)
    assert found.is_multi_node_nvlink
    assert found.platform == platform


@pytest.mark.parametrize(
    "node",
    [
        a_node("p6-b200.48xlarge", AWS),
        a_node("Standard_ND96isr_H100_v5", AZURE, **{"nvidia.com/gpu.clique": "c.1"}),
        a_node("", **{"nvidia.com/gpu.product": "NVIDIA-GH200-480GB"}),
        a_node("", **{"kubernetes.io/arch": "arm64"}),
    ],
)
def test_one_machines_nvswitches_are_no_multi_node_nvlink(node: NodeFacts) -> None:
    assert not platform_of(node).is_multi_node_nvlink


@pytest.mark.parametrize(
    "manifest",
    [
        {"metadata": {"name": "n"}},
        {"metadata": {"name": "n", "labels": None}, "spec": {}, "status": {"allocatable": None}},
    ],
)
def test_a_node_that_says_nothing_is_left_alone(manifest: dict[str, object]) -> None:
    node = node_facts(manifest)
    assert platform_of(node).platform == Platform.OTHER
    assert (node.instance_type, node.gpus) == ("", 0)


def test_a_nodes_facts_are_read_from_its_manifest() -> None:
    node = node_facts(
        {
            "metadata": {"labels": {"beta.kubernetes.io/instance-type": "p5.48xlarge"}},
            "spec": {"providerID": AWS},
            "status": {"allocatable": {"nvidia.com/gpu": "8", "rdma/ib": "1k"}},
        }
    )
    assert (node.instance_type, node.provider_id, node.gpus) == ("p5.48xlarge", AWS, 8)
    assert node.count("rdma/ib") == 1000
