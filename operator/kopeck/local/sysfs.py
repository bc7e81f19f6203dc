"""What Linux tells of this machine's GPUs, NICs and switches.

Switches and links are taken as NCCL takes them (src/graph/xml.cc, ncclTopoGetXmlFromSys): a switch
by its upstream port, a link by the slower of its two ends, at its highest speed.
"""

import re
from pathlib import Path

from kopeck.api.errors import ConfigError
from kopeck.topology.machine import Cpu, Device, DeviceKind, Link, Machine
from kopeck.topology.pcie import KNOWN_WIDTHS, gigatransfers, pci_kind
from kopeck.topology.places import Place, machine_of

_NVIDIA = "0x10de"
_BUS_ID = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]")
_NUMA_UNKNOWN = -1


def read_machine(root: Path) -> Machine:
    """The machine whose /sys and /proc are below `root`: GPUs of NVIDIA, and NICs with RDMA.

    Raises ConfigError where there is no such GPU.
    """
    folder = root / "sys/bus/pci/devices"
    paths = sorted(path.resolve() for path in folder.iterdir()) if folder.is_dir() else []
    places = [place for path in paths if (place := _place(path))]
    if not any(place.device.kind == "gpu" for place in places):
        wrong = "has no GPU of NVIDIA"
        raise ConfigError(str(folder), wrong, "run it on a node with GPUs, outside of containers")
    return machine_of(places, _cpu(root / "proc/cpuinfo"))


def _place(path: Path) -> Place | None:
    """None for what is neither GPU nor NIC with RDMA."""
    class_code = _text(path / "class")
    kind = _kind(path, class_code)
    if kind is None:
        return None
    device = Device(kind, path.name, _link(path), class_code)
    switches = tuple((each.name, _link(each)) for each in _switches(path))
    return Place(device, int(_text(path / "numa_node") or _NUMA_UNKNOWN), switches)


def _kind(path: Path, class_code: str) -> DeviceKind | None:
    match pci_kind(class_code):
        case "gpu" if _text(path / "vendor") == _NVIDIA:
            return "gpu"
        case "nic" if (path / "infiniband").is_dir():
            return "nic"
    return None


def _switches(path: Path) -> list[Path]:
    """Upstream ports above a device, from the CPU down.

    Going up, ports alternate: a downstream port or root port, then the upstream port of its switch.
    """
    ports = []
    while _BUS_ID.fullmatch(path.parent.name):
        path = path.parent
        ports.append(path)
    return ports[1::2][::-1]


def _link(path: Path) -> Link:
    ends = (path, path.parent)
    speeds = [gigatransfers(_text(end / "max_link_speed")) for end in ends]
    widths = [_text(end / "max_link_width") for end in ends]
    known_speeds = [each for each in speeds if each is not None]
    known_widths = [int(each) for each in widths if each.isdigit() and int(each) in KNOWN_WIDTHS]
    return Link(min(known_speeds, default=None), min(known_widths, default=None))


def _cpu(file: Path) -> Cpu | None:
    """None where it is no x86: NCCL then needs nothing."""
    facts = dict(re.findall(r"^(.+?)\s*:\s*(.*)$", _text(file), re.MULTILINE))
    try:
        vendor, family, model = facts["vendor_id"], facts["cpu family"], facts["model"]
    except KeyError:
        return None
    return Cpu("x86_64", vendor, int(family), int(model))


def _text(file: Path) -> str:
    """Empty where there is no such file, as above the root of a PCI tree."""
    try:
        return file.read_text().strip()
    except OSError:
        return ""
