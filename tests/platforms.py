"""Nodes as clouds label them, and what the pods of a job of two whole nodes get on each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
GPUS_OF_A_NODE = 8
TOPOLOGY = {"NCCL_TOPO_FILE": "/etc/kopeck/topology.xml"}
OCI_CONF = "NCCL_IB_GID_INDEX=3\nNCCL_IB_TC=41\n"
OCI_CONF_NAME = "oci-nccl-parameters-bm-gpu-h100-8"


@dataclass(frozen=True, kw_only=True)
class OnPlatform:
    """A kind of node, and what is expected of kopeck there."""

    name: str
    platform: str
    instance_type: str = ""
    provider_id: str = ""
    more_labels: Mapping[str, str] = field(default_factory=dict)
    offers: Mapping[str, str] = field(default_factory=dict)
    """Allocatable beside 8 GPUs."""
    environment: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, str] = field(default_factory=dict)
    files: Sequence[str] = ()
    missing: Sequence[str] = ()
    """Words of what is said to be missing."""

    @property
    def labels(self) -> dict[str, str]:
        named = {INSTANCE_TYPE: self.instance_type} if self.instance_type else {}
        return {**named, **self.more_labels}

    @property
    def allocatable(self) -> dict[str, str]:
        return {"nvidia.com/gpu": str(GPUS_OF_A_NODE), **self.offers}


PLATFORMS = (
    OnPlatform(
        name="aws-p5",
        platform="aws-efa",
        instance_type="p5.48xlarge",
        provider_id="aws:///us-east-1a/i-0123456789",
        offers={"vpc.amazonaws.com/efa": "32", "hugepages-2Mi": "10256Mi"},
        resources={"vpc.amazonaws.com/efa": "32", "hugepages-2Mi": "5120Mi"},
    ),
    OnPlatform(
        name="aws-p5-without-device-plugin",
        platform="aws-efa",
        instance_type="p5.48xlarge",
        provider_id="aws:///us-east-1a/i-0123456789",
        missing=["the node offers no vpc.amazonaws.com/efa"],
    ),
    OnPlatform(
        name="azure-nd-a100-v4",
        platform="azure-nd",
        instance_type="Standard_ND96amsr_A100_v4",
        provider_id="azure:///subscriptions/0/virtualMachines/0",
        offers={"rdma/ib": "8"},
        environment=TOPOLOGY,
        resources={"rdma/ib": "8"},
        files=["topology.xml"],
    ),
    OnPlatform(
        name="azure-nd-h100-v5",
        platform="azure-nd",
        instance_type="Standard_ND96isr_H100_v5",
        provider_id="azure:///subscriptions/0/virtualMachines/0",
        offers={"rdma/shared_ib": "1"},
        environment=TOPOLOGY,
        resources={"rdma/shared_ib": "1"},
        files=["topology.xml"],
    ),
    OnPlatform(
        name="gcp-a3-high",
        platform="other",
        instance_type="a3-highgpu-8g",
        provider_id="gce://project/us-central1-a/gke-0",
    ),
    OnPlatform(
        name="gcp-a3-mega",
        platform="gcp-tcpxo",
        instance_type="a3-megagpu-8g",
        provider_id="gce://project/us-central1-a/gke-0",
        missing=["no container tcpxo-daemon", "no annotation networking.gke.io/interfaces"],
    ),
    OnPlatform(
        name="gcp-a3-ultra",
        platform="gcp-gib",
        instance_type="a3-ultragpu-8g",
        provider_id="gce://project/us-central1-a/gke-0",
        missing=["mounts nothing at /usr/local/gib"],
    ),
    OnPlatform(
        name="oci-h100",
        platform="oci",
        instance_type="BM.GPU.H100.8",
        provider_id="ocid1.instance.oc1.iad.a",
        files=["nccl.conf"],
    ),
    OnPlatform(
        name="coreweave",
        platform="coreweave",
        instance_type="gd-8xh100ib-i128",
        more_labels={"node.coreweave.cloud/class": "gpu"},
        offers={"rdma/ib": "1k"},
        resources={"rdma/ib": "1"},
    ),
    OnPlatform(
        name="hgx",
        platform="rdma",
        offers={"rdma/hca": "8"},
        resources={"rdma/hca": "8"},
    ),
)


def node_manifest(on: OnPlatform, name: str = "node-0", **spec: Any) -> dict[str, Any]:
    """A node as the API server shows it."""
    return {
        "metadata": {"name": name, "labels": on.labels},
        "spec": {"providerID": on.provider_id} | spec,
        "status": {"allocatable": {"cpu": "64", "memory": "512Gi"} | on.allocatable},
    }
