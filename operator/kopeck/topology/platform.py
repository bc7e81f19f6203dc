"""The platform of a node: whose machine it is, and over which fabric its GPUs reach others.

The cloud is read from what only its own software writes: CoreWeave's labels, the provider id, the
labels of managed node pools. The name of the instance type comes last, for it is what a person
may have typed.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from kopeck.topology.node import NodeFacts
from kopeck.topology.resources import EFA_RESOURCE, rdma_resources


class Cloud(StrEnum):
    """Who runs the machine."""

    AWS = "aws"
    AZURE = "azure"
    GCP = "gcp"
    OCI = "oci"
    COREWEAVE = "coreweave"
    NONE = "none"
    """On premises, or a cloud that no rule knows."""


class Platform(StrEnum):
    """The rules that hold for a node."""

    AWS_EFA = "aws-efa"
    AZURE_ND = "azure-nd"
    AZURE_NC = "azure-nc"
    GCP_TCPXO = "gcp-tcpxo"
    GCP_GIB = "gcp-gib"
    OCI = "oci"
    COREWEAVE = "coreweave"
    RDMA = "rdma"
    """InfiniBand or RoCE on premises, or in a cloud without rules of its own."""
    OTHER = "other"


@dataclass(frozen=True)
class NodePlatform:
    """What a node was found to be, and the sentence that says by what."""

    platform: Platform
    cloud: Cloud
    reason: str
    is_multi_node_nvlink: bool = False
    """NVLink reaches beyond the node, whatever the fabric beside it."""


_CLOUD_BY_PROVIDER = {
    "aws": Cloud.AWS,
    "azure": Cloud.AZURE,
    "gce": Cloud.GCP,
    "oci": Cloud.OCI,
}
_OCI_ID_PREFIX = "ocid1."  # OKE writes the bare id, without a scheme
_COREWEAVE_PREFIXES = ("node.coreweave.cloud/", "backend.coreweave.cloud/", "ib.coreweave.cloud/")
_CLOUD_BY_LABEL_PREFIX = {
    "eks.amazonaws.com/": Cloud.AWS,
    "karpenter.k8s.aws/": Cloud.AWS,
    "kubernetes.azure.com/": Cloud.AZURE,
    "cloud.google.com/gke-": Cloud.GCP,
    "oci.oraclecloud.com/": Cloud.OCI,
}
_CLOUD_BY_INSTANCE_TYPE = (
    (re.compile(r"[a-z][a-z0-9-]*\.(metal|\d*[a-z]*large|metal-\d+xl)"), Cloud.AWS),
    (re.compile(r"standard_.+", re.IGNORECASE), Cloud.AZURE),
    (re.compile(r"(a2|a3|a4|a4x|g2|g4)-[a-z0-9]+-\d+g?"), Cloud.GCP),
    (re.compile(r"(bm|vm)\..+", re.IGNORECASE), Cloud.OCI),
    (re.compile(r"gd-\d+x.+|gb\d+-\d+x.*"), Cloud.COREWEAVE),
)

# Families whose every size is sold with EFA: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa.html
# Others have it in their large sizes only; there the node's resource decides.
_EFA_FAMILIES = re.compile(r"(p4d|p4de|p5|p5e|p5en|p6-b200|p6-b300|p6e-gb200|p6e-gb300)\..+")
_GKE_GPU_LABEL = "cloud.google.com/gke-accelerator"
_TCPXO_GPUS = ("nvidia-h100-mega-80gb",)
_GIB_GPUS = ("nvidia-h200-141gb", "nvidia-b200", "nvidia-gb200", "nvidia-gb300")
_TCPXO_TYPES = re.compile(r"a3-megagpu-.+")
_GIB_TYPES = re.compile(r"(a3-ultragpu|a4-highgpu|a4x-highgpu)-.+")
_AZURE_ND = re.compile(r"standard_nd.+", re.IGNORECASE)
_AZURE_NC = re.compile(r"standard_nc.+", re.IGNORECASE)
_MULTI_NODE_NVLINK_NAMES = re.compile(r"gb[23]00|^a4x-", re.IGNORECASE)
_RDMA_LABEL = "feature.node.kubernetes.io/rdma.available"


def platform_of(node: NodeFacts) -> NodePlatform:
    """The platform of a node. A node that says nothing is OTHER: NCCL is left alone there."""
    cloud, by = _cloud(node)
    platform, because = _platform(node, cloud)
    return NodePlatform(
        platform, cloud, "; ".join(filter(None, (by, because))), _has_multi_node_nvlink(node)
    )


def _cloud(node: NodeFacts) -> tuple[Cloud, str]:
    for label in node.labels:
        if label.startswith(_COREWEAVE_PREFIXES):
            return Cloud.COREWEAVE, f"label {label}"
    scheme = node.provider_id.partition("://")[0]
    if cloud := _CLOUD_BY_PROVIDER.get(scheme):
        return cloud, f"providerID {scheme}://"
    if node.provider_id.startswith(_OCI_ID_PREFIX):
        return Cloud.OCI, f"providerID {_OCI_ID_PREFIX}"
    for label in node.labels:
        for prefix, cloud in _CLOUD_BY_LABEL_PREFIX.items():
            if label.startswith(prefix):
                return cloud, f"label {label}"
    if node.count(EFA_RESOURCE):
        return Cloud.AWS, ""
    return _cloud_by_instance_type(node.instance_type)


def _cloud_by_instance_type(instance_type: str) -> tuple[Cloud, str]:
    for pattern, cloud in _CLOUD_BY_INSTANCE_TYPE:
        if pattern.fullmatch(instance_type):
            return cloud, ""
    return Cloud.NONE, "no cloud is known by providerID, labels or instance type"


def _platform(node: NodeFacts, cloud: Cloud) -> tuple[Platform, str]:
    match cloud:
        case Cloud.AWS:
            return _of_aws(node)
        case Cloud.AZURE:
            return _of_azure(node)
        case Cloud.GCP:
            return _of_gcp(node)
        case Cloud.OCI if node.instance_type.lower().startswith("bm.gpu"):
            return Platform.OCI, f"instance type {node.instance_type}"
        case Cloud.COREWEAVE:
            return Platform.COREWEAVE, f"instance type {node.instance_type or 'not said'}"
        case _:
            return _by_rdma(node)


def _of_aws(node: NodeFacts) -> tuple[Platform, str]:
    if node.count(EFA_RESOURCE):
        return Platform.AWS_EFA, f"allocatable {EFA_RESOURCE}"
    if _EFA_FAMILIES.fullmatch(node.instance_type):
        return Platform.AWS_EFA, f"instance type {node.instance_type}"
    return Platform.OTHER, f"instance type {node.instance_type or 'not said'} without EFA"


def _of_azure(node: NodeFacts) -> tuple[Platform, str]:
    said = f"instance type {node.instance_type}"
    if _AZURE_ND.fullmatch(node.instance_type):
        return Platform.AZURE_ND, said
    if _AZURE_NC.fullmatch(node.instance_type):
        return Platform.AZURE_NC, said
    return _by_rdma(node)


def _of_gcp(node: NodeFacts) -> tuple[Platform, str]:
    said = f"instance type {node.instance_type or 'not said'}"
    gpu = node.labels.get(_GKE_GPU_LABEL, "")
    if _TCPXO_TYPES.fullmatch(node.instance_type) or gpu in _TCPXO_GPUS:
        return Platform.GCP_TCPXO, said
    if _GIB_TYPES.fullmatch(node.instance_type) or gpu in _GIB_GPUS:
        return Platform.GCP_GIB, said
    return Platform.OTHER, f"{said}, which has neither TCPXO nor gIB"


def _by_rdma(node: NodeFacts) -> tuple[Platform, str]:
    if offered := rdma_resources(node.allocatable):
        return Platform.RDMA, f"allocatable {offered[0]}"
    if node.labels.get(_RDMA_LABEL) == "true":
        return Platform.RDMA, f"label {_RDMA_LABEL}"
    return Platform.OTHER, "no RDMA resource"


def _has_multi_node_nvlink(node: NodeFacts) -> bool:
    """By name; else by the clique label, which only boards with an Arm host CPU mean so.

    GPU feature discovery may label the single NVSwitch domain of an x86 machine too.
    """
    names = (node.instance_type, node.labels.get("nvidia.com/gpu.product", ""))
    if any(_MULTI_NODE_NVLINK_NAMES.search(name) for name in names):
        return True
    is_arm = node.labels.get("kubernetes.io/arch") == "arm64"
    return is_arm and bool(node.labels.get("nvidia.com/gpu.clique"))
