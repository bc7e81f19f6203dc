"""A machine as a topology file that every version of NCCL since 2.18 reads.

Only `cpu` and `pci`: what NCCL finds out by itself would be beaten by what stands in the file. No
comments, single blanks, double quotes, one tag a line.
"""

from collections.abc import Iterator

from kopeck.topology.machine import Cpu, Link, Machine, NumaNode, Part, Switch
from kopeck.topology.pcie import BRIDGE_CLASS, link_speed

_INDENT = "  "


def to_xml(machine: Machine) -> str:
    """The file; attributes of what is not known are left to NCCL."""
    lines = ['<system version="1">']
    for node in machine.numa_nodes:
        lines += _numa_node(node)
    return "\n".join([*lines, "</system>", ""])


def _numa_node(node: NumaNode) -> Iterator[str]:
    attributes = {"numaid": str(node.numa_id)} | (_identity(node.cpu) if node.cpu else {})
    yield f"{_INDENT}<cpu{_text(attributes)}>"
    for part in node.below:
        yield from _part(part, _INDENT * 2)
    yield f"{_INDENT}</cpu>"


def _part(part: Part, indent: str) -> Iterator[str]:
    class_code = BRIDGE_CLASS if isinstance(part, Switch) else part.class_code
    attributes = {"busid": part.bus_id}
    if class_code is not None:
        attributes["class"] = class_code
    tag = f"{indent}<pci{_text(attributes | _link(part.link))}"
    if not isinstance(part, Switch) or not part.below:
        yield f"{tag}/>"
        return
    yield f"{tag}>"
    for below in part.below:
        yield from _part(below, indent + _INDENT)
    yield f"{indent}</pci>"


def _identity(cpu: Cpu) -> dict[str, str]:
    return {
        "arch": cpu.arch,
        "vendor": cpu.vendor,
        "familyid": str(cpu.family_id),
        "modelid": str(cpu.model_id),
    }


def _link(link: Link) -> dict[str, str]:
    known = {}
    if link.gigatransfers is not None:
        known["link_speed"] = link_speed(link.gigatransfers)
    if link.lanes is not None:
        known["link_width"] = str(link.lanes)
    return known


def _text(attributes: dict[str, str]) -> str:
    return "".join(f' {name}="{value}"' for name, value in attributes.items())
