"""Nodes as clouds label them, and what the pods of a job of two whole nodes get on each."""

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.builders import a_job
from tests.kube_client import KubeClient

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
CHOSEN = "kopeck.test/platform"
"""A label and taint of nodes: the name of the row below."""
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


def create_nodes(cluster: Any, on: OnPlatform, count: int = 2, **labels: str) -> list[str]:
    """Nodes for KWOK that only pods of `a_job_on` get; `labels` are put beside the platform's."""
    names: list[str] = cluster.create_fake_nodes(
        count,
        prefix=f"{on.name}-{secrets.token_hex(2)}",
        labels=on.labels | {CHOSEN: on.name} | labels,
        capacity=on.allocatable,
    )
    own = {"providerID": on.provider_id} if on.provider_id else {}
    spec = {"taints": [{"key": CHOSEN, "value": on.name, "effect": "NoSchedule"}]} | own
    cluster.kubectl("patch", "node", *names, "--patch", json.dumps({"spec": spec}))
    return names


def a_job_on(selected: Mapping[str, str], name: str = "job", **nccl: Any) -> dict[str, Any]:
    """A TrainingJob of two whole nodes of those that have all the labels."""
    template = {
        "nodeSelector": dict(selected),
        "tolerations": [{"key": CHOSEN, "operator": "Exists"}],
    }
    return a_job(
        name,
        workers={"gpusPerWorker": GPUS_OF_A_NODE, "template": {"spec": template}},
        training={"globalBatchSize": 64},
        nccl=nccl or None,
    )


def create_providers_config_map(kube: KubeClient) -> None:
    """The ConfigMap by which OCI tells NCCL its fabric, if it is not there yet."""
    path = "/api/v1/namespaces/default/configmaps"
    if kube.get(f"{path}/{OCI_CONF_NAME}") is None:
        config_map = {"metadata": {"name": OCI_CONF_NAME}, "data": {"nccl.conf": OCI_CONF}}
        kube.create(path, config_map)
