"""The machine that a topology file describes, as NCCL takes it."""

from kopeck.api.errors import ConfigError
from kopeck.topology.check import check
from kopeck.topology.elements import Element
from kopeck.topology.machine import Cpu, Device, DeviceKind, Link, Machine, NumaNode, Part, Switch
from kopeck.topology.pcie import gigatransfers, pci_kind
from kopeck.topology.reader import read

_LANES_IF_NOT_SAID = 16


def parse_machine(content: bytes, where: str) -> Machine:
    """The machine of a file. Raises ConfigError naming `where` if NCCL would stop at the file."""
    fatal = [each for each in check(content) if each.rule.kind == "fatal"]
    if fatal:
        wrong = f"line {fatal[0].line}: {fatal[0].wrong}"
        raise ConfigError(where, wrong, fatal[0].instead)
    systems = [each for each in read(content)[0] if each.name == "system"]
    cpus = systems[0].named("cpu") if systems else ()
    return Machine(tuple(_numa_node(cpu) for cpu in cpus))


def _numa_node(cpu: Element) -> NumaNode:
    return NumaNode(int(cpu.get("numaid") or 0), _cpu(cpu), _below(cpu))


def _cpu(cpu: Element) -> Cpu | None:
    arch, vendor = cpu.get("arch"), cpu.get("vendor")
    family, model = cpu.get("familyid"), cpu.get("modelid")
    if arch is None or vendor is None or family is None or model is None:
        return None
    return Cpu(arch, vendor, int(family), int(model))


def _below(element: Element) -> tuple[Part, ...]:
    return tuple(_part(pci) for pci in element.named("pci"))


def _part(pci: Element) -> Part:
    bus_id = pci.get("busid") or ""
    class_code = pci.get("class")
    kind = pci_kind(class_code or "")
    if kind == "bridge" or (kind is None and any(pci.named("pci"))):
        return Switch(bus_id, _link(pci, if_no_lanes=_LANES_IF_NOT_SAID), _below(pci))
    link = _link(pci, if_no_lanes=None)
    return Device(_device_kind(pci, kind), bus_id, link, class_code)


def _device_kind(pci: Element, kind: str | None) -> DeviceKind:
    if kind == "nic" or any(pci.named("nic")):
        return "nic"
    if kind == "gpu" or any(pci.named("gpu")):
        return "gpu"
    return "unknown"


def _link(pci: Element, *, if_no_lanes: int | None) -> Link:
    speed, width = pci.get("link_speed"), pci.get("link_width")
    lanes = if_no_lanes if width is None else int(width) or _LANES_IF_NOT_SAID
    return Link(None if speed is None else gigatransfers(speed), lanes)
