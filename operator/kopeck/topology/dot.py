"""A machine as a Graphviz graph."""

from collections.abc import Iterator

from kopeck.topology.machine import Device, Machine, Part

_KINDS = {"gpu": "GPU", "nic": "NIC", "unknown": "device"}


def to_dot(name: str, machine: Machine) -> str:
    """For `dot -Tsvg`: NUMA nodes to the left, links with their speed."""
    lines = [f'graph "{name}" {{', "  rankdir=LR;", "  node [shape=box];"]
    for node in machine.numa_nodes:
        place = f"NUMA {node.numa_id}"
        lines.append(f'  "{place}" [style=bold];')
        for part in node.below:
            lines += _part(place, part)
    return "\n".join([*lines, "}", ""])


def _part(above: str, part: Part) -> Iterator[str]:
    kind = _KINDS[part.kind] if isinstance(part, Device) else "switch"
    yield f'  "{part.bus_id}" [label="{kind}\\n{part.bus_id}"];'
    yield f'  "{above}" -- "{part.bus_id}" [label="{part.link}"];'
    if not isinstance(part, Device):
        for below in part.below:
            yield from _part(part.bus_id, below)
