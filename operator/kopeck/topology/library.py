"""The instance types that kopeck knows, each with the public sources of its row.

A row says what its sources say and no more. Where no source tells switches and bus ids, there is
no machine in the row, and no file: a wrong one is worse than none.
"""

from kopeck.api.errors import ConfigError
from kopeck.topology.instance_type import InstanceType
from kopeck.topology.layouts import nd_a100_v4, nd_h100_v5, p4d

_AWS = "AWS"
_AZURE = "Azure"
_GOOGLE = "Google Cloud"
_ORACLE = "Oracle Cloud"

_AWS_GPUS = "https://docs.aws.amazon.com/batch/latest/userguide/gpu-jobs.html"
_OFI = "https://github.com/aws/aws-ofi-nccl"
_RAPIDS_ON_AWS = "https://github.com/rapidsai/deployment/blob/main/source/cloud/aws/index.md"
_AZURE_SIZES = "https://learn.microsoft.com/azure/virtual-machines/sizes/gpu-accelerated"
_AZURE_IMAGES = "https://github.com/Azure/azhpc-images"
_AZURE_SKUS = f"{_AZURE_IMAGES}/blob/master/components/setup_sku_customizations.sh"
_GKE = "https://github.com/GoogleCloudPlatform/container-engine-accelerators"
_OCI_SHAPES = (
    "https://github.com/oracle-quickstart/oci-hpc-oke/blob/main/docs/"
    "recommended-nccl-rccl-parameters-by-shape.md"
)
_EFA_CARDS = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-acc-inst-types.html"

_SHIPPED_BY_EFA = (
    "the EFA plugin brings this type's topology itself, and NCCL_TOPO_FILE would disable that"
)
_FOUND_BY_EFA = (
    "the EFA plugin works out the topology on the machine, and NCCL_TOPO_FILE would disable that"
)
_NOTHING_PUBLIC = "no public source says how its devices are connected"
_BARE_METAL = "it is bare metal: NCCL in a pod sees its PCIe switches in /sys"
_GOOGLE_SETS = "Google's profile script sets what NCCL needs, in the pod"
_VIRTUAL_SWITCHES = (
    "pods see a flat machine, and only the file's virtual switches turn on GPUDirect RDMA"
)

INSTANCE_TYPES: tuple[InstanceType, ...] = (
    InstanceType(
        names=("p4d.24xlarge", "p4de.24xlarge"),
        cloud=_AWS,
        gpu="NVIDIA A100",
        gpus=8,
        nic="EFA",
        nics=4,
        machine=p4d(),
        verdict="left to NCCL",
        why=_SHIPPED_BY_EFA,
        sources=(
            f"{_OFI}/blob/master/topology/p4d-24xl-topo.xml",
            f"{_OFI}/blob/master/topology/p4de-24xl-topo.xml",
        ),
    ),
    InstanceType(
        names=("p5.48xlarge",),
        cloud=_AWS,
        gpu="NVIDIA H100",
        gpus=8,
        nic="EFA",
        nics=32,
        verdict="left to NCCL",
        why=_FOUND_BY_EFA,
        sources=(
            _RAPIDS_ON_AWS,
            _EFA_CARDS,
            f"{_OFI}/blob/master/src/platform-aws.cpp",
        ),
    ),
    InstanceType(
        names=("p5e.48xlarge",),
        cloud=_AWS,
        gpu="NVIDIA H200",
        gpus=8,
        nic="EFA",
        nics=32,
        verdict="left to NCCL",
        why=_FOUND_BY_EFA,
        sources=(
            "https://aws.amazon.com/ec2/instance-types/p5/",
            _EFA_CARDS,
            f"{_OFI}/blob/master/src/platform-aws.cpp",
        ),
    ),
    InstanceType(
        names=("p5en.48xlarge",),
        cloud=_AWS,
        gpu="NVIDIA H200",
        gpus=8,
        nic="EFA",
        nics=16,
        verdict="left to NCCL",
        why=_FOUND_BY_EFA,
        sources=(
            "https://aws.amazon.com/ec2/instance-types/p5/",
            "https://github.com/meta-pytorch/torchx/pull/995",
            f"{_OFI}/blob/master/src/platform-aws.cpp",
        ),
    ),
    InstanceType(
        names=("g5.48xlarge",),
        cloud=_AWS,
        gpu="NVIDIA A10G",
        gpus=8,
        nic="EFA",
        verdict="left to NCCL",
        why=f"{_SHIPPED_BY_EFA}; that file has bus ids by NUMA node, without saying whose they are",
        sources=(
            _AWS_GPUS,
            f"{_OFI}/blob/master/topology/g5.48xl-topo.xml",
        ),
    ),
    InstanceType(
        names=("g5.12xlarge", "g5.24xlarge"),
        cloud=_AWS,
        gpu="NVIDIA A10G",
        gpus=4,
        verdict="left to NCCL",
        why=_NOTHING_PUBLIC,
        sources=(_AWS_GPUS,),
    ),
    InstanceType(
        names=("g6.12xlarge", "g6.24xlarge"),
        cloud=_AWS,
        gpu="NVIDIA L4",
        gpus=4,
        verdict="left to NCCL",
        why=_NOTHING_PUBLIC,
        sources=(_AWS_GPUS, _RAPIDS_ON_AWS),
    ),
    InstanceType(
        names=("g6.48xlarge",),
        cloud=_AWS,
        gpu="NVIDIA L4",
        gpus=8,
        nic="EFA",
        verdict="left to NCCL",
        why=_NOTHING_PUBLIC,
        sources=(_AWS_GPUS, _RAPIDS_ON_AWS),
    ),
    InstanceType(
        names=("Standard_ND96asr_v4", "Standard_ND96amsr_A100_v4"),
        cloud=_AZURE,
        gpu="NVIDIA A100",
        gpus=8,
        nic="InfiniBand",
        nics=8,
        machine=nd_a100_v4(),
        verdict="needed",
        why=_VIRTUAL_SWITCHES,
        sources=(f"{_AZURE_IMAGES}/blob/master/topology/ndv4-topo.xml", _AZURE_SKUS),
    ),
    InstanceType(
        names=("Standard_ND96isr_H100_v5", "Standard_ND96isr_H200_v5"),
        cloud=_AZURE,
        gpu="NVIDIA H100 or H200",
        gpus=8,
        nic="InfiniBand",
        nics=8,
        machine=nd_h100_v5(),
        verdict="needed",
        why=_VIRTUAL_SWITCHES,
        sources=(f"{_AZURE_IMAGES}/blob/master/topology/ndv5-topo.xml", _AZURE_SKUS),
    ),
    InstanceType(
        names=("Standard_ND96isr_MI300X_v5", "Standard_ND96is_MI300X_v5"),
        cloud=_AZURE,
        gpu="AMD MI300X",
        gpus=8,
        verdict="refused",
        why="its GPUs are AMD's, which NCCL does not drive; choose a type with NVIDIA GPUs",
        sources=(f"{_AZURE_SIZES}/ndmi300xv5-series",),
    ),
    InstanceType(
        names=("Standard_NC80adis_H100_v5",),
        cloud=_AZURE,
        gpu="NVIDIA H100",
        gpus=2,
        verdict="left to NCCL",
        why="Azure's images bring no topology file for it",
        sources=(
            f"{_AZURE_SIZES}/ncadsh100v5-series",
            f"{_AZURE_IMAGES}/blob/master/components/customizations/ncv5.sh",
        ),
    ),
    InstanceType(
        names=("Standard_NC40ads_H100_v5",),
        cloud=_AZURE,
        gpu="NVIDIA H100",
        gpus=1,
        verdict="left to NCCL",
        why="it has one GPU, and Azure's images bring no topology file for it",
        sources=(
            f"{_AZURE_SIZES}/ncadsh100v5-series",
            _AZURE_SKUS,
        ),
    ),
    InstanceType(
        names=("a3-highgpu-8g",),
        cloud=_GOOGLE,
        gpu="NVIDIA H100",
        gpus=8,
        nic="GPUDirect-TCPX",
        nics=4,
        verdict="left to NCCL",
        why=_GOOGLE_SETS,
        sources=(
            "https://docs.cloud.google.com/compute/docs/accelerator-optimized-machines",
            f"{_GKE}/blob/master/gpudirect-tcpx/nccl-test-latest.yaml",
        ),
    ),
    InstanceType(
        names=("a3-megagpu-8g",),
        cloud=_GOOGLE,
        gpu="NVIDIA H100",
        gpus=8,
        nic="GPUDirect-TCPXO",
        nics=8,
        verdict="left to NCCL",
        why=_GOOGLE_SETS,
        sources=(
            "https://docs.cloud.google.com/compute/docs/accelerator-optimized-machines",
            f"{_GKE}/blob/master/gpudirect-tcpxo/README.md",
        ),
    ),
    InstanceType(
        names=("a3-ultragpu-8g",),
        cloud=_GOOGLE,
        gpu="NVIDIA H200",
        gpus=8,
        nic="RoCE",
        nics=8,
        verdict="left to NCCL",
        why=_GOOGLE_SETS,
        sources=(
            "https://docs.cloud.google.com/compute/docs/accelerator-optimized-machines",
            "https://github.com/GoogleCloudPlatform/cluster-toolkit/releases/tag/v1.44.1",
        ),
    ),
    InstanceType(
        names=("a4-highgpu-8g",),
        cloud=_GOOGLE,
        gpu="NVIDIA B200",
        gpus=8,
        nic="RoCE",
        nics=8,
        verdict="left to NCCL",
        why=_GOOGLE_SETS,
        sources=(
            "https://docs.cloud.google.com/compute/docs/accelerator-optimized-machines",
            f"{_GKE}/blob/master/gpudirect-rdma/nccl-test-a4.yaml",
        ),
    ),
    InstanceType(
        names=("BM.GPU4.8", "BM.GPU.A100-v2.8"),
        cloud=_ORACLE,
        gpu="NVIDIA A100",
        gpus=8,
        nic="RoCE port",
        nics=16,
        verdict="left to NCCL",
        why=_BARE_METAL,
        sources=(
            "https://docs.oracle.com/iaas/Content/Compute/References/computeshapes.htm",
            _OCI_SHAPES,
        ),
    ),
    InstanceType(
        names=("BM.GPU.H100.8",),
        cloud=_ORACLE,
        gpu="NVIDIA H100",
        gpus=8,
        nic="RoCE port",
        nics=16,
        verdict="left to NCCL",
        why=_BARE_METAL,
        sources=(
            "https://docs.oracle.com/iaas/Content/Compute/References/computeshapes.htm",
            _OCI_SHAPES,
        ),
    ),
    InstanceType(
        names=("gd-8xh100ib-i128", "gd-8xh200ib-i128"),
        cloud="CoreWeave",
        gpu="NVIDIA H100 or H200",
        gpus=8,
        nic="InfiniBand",
        verdict="left to NCCL",
        why=_BARE_METAL,
        sources=(
            "https://docs.coreweave.com/platform/instances/gpu-instances",
            "https://docs.coreweave.com/products/networking/hpc-interconnect/use-gpudirect-rdma",
        ),
    ),
    InstanceType(
        names=("hgx-8gpu",),
        cloud="any, on bare metal",
        gpu="NVIDIA HGX",
        gpus=8,
        verdict="left to NCCL",
        why=f"{_BARE_METAL}, and each maker of servers wires its own",
        sources=(
            "https://developer.nvidia.com/blog/introducing-nvidia-hgx-h100-an-accelerated-server-platform-for-ai-and-high-performance-computing/",
        ),
    ),
)

_BY_NAME = {name.lower(): each for each in INSTANCE_TYPES for name in each.names}


def find_instance_type(name: str) -> InstanceType | None:
    """The row of a type, however it is capitalised; None for one that is not known."""
    return _BY_NAME.get(name.lower())


def known_instance_type(name: str) -> InstanceType:
    """The row of a type. Raises ConfigError for one that is not known."""
    known = find_instance_type(name)
    if known is None:
        names = ", ".join(sorted(name for each in INSTANCE_TYPES for name in each.names))
        raise ConfigError(name, "is no instance type that kopeck knows", f"use one of {names}")
    return known
