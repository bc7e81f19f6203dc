"""Which CPUs each rank runs on: those beside its GPU, so that its memory lies there too."""

from collections.abc import Callable, Mapping
from pathlib import Path

from kopeck_trainer.nccl.cpu_affinity import NumaNode, numa_node
from kopeck_trainer.nccl.gpus import visible_gpus
from kopeck_trainer.nccl.machine import Machine
from kopeck_trainer.nccl.topology_file import numa_nodes_of_file


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
    found = [_narrowed(node, machine.cpus) for node in nodes]
    for number in sorted({node.number for node in nodes if node}):
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


def _narrowed(node: NumaNode | None, cpus: frozenset[int]) -> frozenset[int] | None:
    """The pod's CPUs on the node; None where they are all or none of the pod's."""
    within = node.cpus & cpus if node else frozenset()
    return within if within and within != cpus else None


def _is(node: NumaNode | None, number: int) -> bool:
    return node is not None and node.number == number


def _named(ranks: list[int]) -> str:
    numbers = ", ".join(map(str, ranks))
    return f"rank {numbers} runs" if len(ranks) == 1 else f"ranks {numbers} run"
