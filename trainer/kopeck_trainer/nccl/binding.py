"""Which CPUs each rank runs on: those beside its GPU, so that its memory lies there too."""

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from kopeck_trainer.nccl.cpu_affinity import NumaNode, numa_node
from kopeck_trainer.nccl.gpus import visible_gpus
from kopeck_trainer.nccl.machine import Machine
from kopeck_trainer.nccl.topology_file import numa_nodes_of_file

LEAST_SHARE = 0.5
"""Of a rank's even part of the pod's CPUs. With fewer it would lose more by what it waits for, its
batches and launches, than it gains by near memory. Chosen, not measured."""


def cpus_of_ranks(
    environ: Mapping[str, str], *, ranks: int, machine: Machine, say: Callable[[str], None]
) -> list[frozenset[int] | None]:
    """The CPUs of each local rank, fewer than the pod has; None where it may run on all of them.

    Only where each rank has a GPU to itself: a program that drives several, or starts processes
    that do, needs the CPUs of all.
    """
    nodes = _nodes_of_gpus(environ, machine.root)
    if len(nodes) != ranks:
        return [None] * ranks
    ranks_by_node = Counter(node.number for node in nodes if node)
    least = {
        number: LEAST_SHARE * len(machine.cpus) * n / ranks for number, n in ranks_by_node.items()
    }
    found = [_narrowed(node, machine.cpus, least) for node in nodes]
    for number in sorted(ranks_by_node):
        bound = [rank for rank in range(ranks) if found[rank] and _is(nodes[rank], number)]
        if bound:
            cpus = found[bound[0]] or frozenset()
            say(
                f"local {_named(bound)} on {len(cpus)} of the pod's {len(machine.cpus)} CPUs, those"
                f" of NUMA node {number} beside the GPU"
            )
    return found


def _nodes_of_gpus(environ: Mapping[str, str], root: Path) -> list[NumaNode | None]:
    """By local rank."""
    by_file = numa_nodes_of_file(environ, root)
    return [numa_node(gpu, by_file, root) for gpu in visible_gpus(environ, root)]


def _narrowed(
    node: NumaNode | None, cpus: frozenset[int], least: Mapping[int, float]
) -> frozenset[int] | None:
    """The pod's CPUs on the node; None where all are, or too few for its ranks."""
    if node is None:
        return None
    within = node.cpus & cpus
    return within if within != cpus and len(within) >= least[node.number] else None


def _is(node: NumaNode | None, number: int) -> bool:
    return node is not None and node.number == number


def _named(ranks: list[int]) -> str:
    numbers = ", ".join(map(str, ranks))
    return f"rank {numbers} runs" if len(ranks) == 1 else f"ranks {numbers} run"
