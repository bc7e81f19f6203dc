"""What is known of an instance type, as JSON."""

from typing import Any

from kopeck.topology.instance_type import InstanceType
from kopeck.topology.machine import Device, Machine, NumaNode, Part


def as_document(known: InstanceType) -> dict[str, Any]:
    """Null is unknown; link speeds are GT/s per lane."""
    return {
        "instanceTypes": list(known.names),
        "cloud": known.cloud,
        "gpu": known.gpu,
        "gpus": known.gpus,
        "nic": known.nic,
        "nics": known.nics,
        "topologyFile": known.verdict,
        "why": known.why,
        "unknown": list(known.unknown),
        "sources": list(known.sources),
        "machine": _machine(known.machine) if known.machine else None,
    }


def _machine(machine: Machine) -> list[dict[str, Any]]:
    return [_numa_node(node) for node in machine.numa_nodes]


def _numa_node(node: NumaNode) -> dict[str, Any]:
    return {"numa": node.numa_id, "below": [_part(part) for part in node.below]}


def _part(part: Part) -> dict[str, Any]:
    link = {"gigatransfers": part.link.gigatransfers, "lanes": part.link.lanes}
    placed = {"busId": part.bus_id, "link": link}
    if isinstance(part, Device):
        return {"kind": part.kind} | placed
    return {"kind": "switch"} | placed | {"below": [_part(below) for below in part.below]}
