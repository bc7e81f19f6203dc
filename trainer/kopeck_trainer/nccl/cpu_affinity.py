"""The CPUs beside each GPU: of its NUMA node, as far as the pod may use them.

With NCCL_IGNORE_CPU_AFFINITY NCCL binds to the GPU's CPUs whatever the pod may use, and since 2.29
fails where the pod has none of them. Clouds set it in their files for jobs on whole machines.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

IGNORE_AFFINITY = "NCCL_IGNORE_CPU_AFFINITY"

_NUMA_UNKNOWN = -1


@dataclass(frozen=True, kw_only=True)
class NumaNode:
    """The node that a GPU is on."""

    number: int
    cpus: frozenset[int]
    """All of the machine's on this node."""


def numa_node(gpu: str, by_file: Mapping[str, int], root: Path) -> NumaNode | None:
    """By sysfs. Where that does not know, as in many virtual machines, by the topology file.

    None where neither does, and where the node has no CPU here. `by_file` is the node by bus id.
    """
    number = _by_sysfs(root / "sys/bus/pci/devices" / gpu / "numa_node")
    if number == _NUMA_UNKNOWN:
        number = by_file.get(gpu, _NUMA_UNKNOWN)
    if number == _NUMA_UNKNOWN:
        return None
    cpus = _cpus(root / "sys/devices/system/node" / f"node{number}" / "cpulist")
    return NumaNode(number=number, cpus=cpus) if cpus else None


def gpu_without_cpu(
    gpus: Sequence[str], cpus: frozenset[int], by_file: Mapping[str, int], root: Path
) -> str | None:
    """The first GPU, by bus id, beside which the pod has no CPU; None if there is none."""
    for gpu in gpus:
        node = numa_node(gpu, by_file, root)
        if node and not node.cpus & cpus:
            return gpu
    return None


def _by_sysfs(numa_node_file: Path) -> int:
    try:
        return int(numa_node_file.read_text())
    except (OSError, ValueError):
        return _NUMA_UNKNOWN


def _cpus(cpu_list: Path) -> frozenset[int]:
    """CPUs of a list such as 0-47,96-143; empty where it is unknown."""
    try:
        ranges = cpu_list.read_text().strip().split(",")
    except OSError:
        return frozenset()
    found: set[int] = set()
    for each in filter(None, ranges):
        first, _, last = each.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)
