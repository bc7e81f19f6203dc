"""Whether this pod has CPUs beside each of its GPUs.

With NCCL_IGNORE_CPU_AFFINITY NCCL binds to the GPU's CPUs whatever the pod may use, and since 2.29
fails where the pod has none of them. Clouds set it in their files for jobs on whole machines.
"""

from collections.abc import Sequence
from pathlib import Path

IGNORE_AFFINITY = "NCCL_IGNORE_CPU_AFFINITY"


def gpu_without_cpu(gpus: Sequence[str], cpus: frozenset[int], root: Path) -> str | None:
    """The first GPU, by bus id, beside which the pod has no CPU; None if there is none."""
    for gpu in gpus:
        beside = _local_cpus(root / "sys/bus/pci/devices" / gpu / "local_cpulist")
        if beside and not beside & cpus:
            return gpu
    return None


def _local_cpus(cpu_list: Path) -> set[int]:
    """CPUs of a list such as 0-47,96-143; empty where it is unknown."""
    try:
        ranges = cpu_list.read_text().strip().split(",")
    except OSError:
        return set()
    found: set[int] = set()
    for each in filter(None, ranges):
        first, _, last = each.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found
