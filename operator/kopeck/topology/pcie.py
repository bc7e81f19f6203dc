"""PCI classes and link speeds, as NCCL tells them apart."""

from collections.abc import Mapping
from typing import Literal

PciKind = Literal["gpu", "nic", "bridge"]

BRIDGE_CLASS = "0x060400"
VIRTUAL_BUS = "ffff:"
"""How bus ids of bridges begin that no machine has: made up by a file's author."""

# NCCL's tables, each matched by how the value begins (src/graph/topo.cc, kvDictPciClass and
# kvDictPciGen); NVSwitches (0x0680..) and data-direct functions (0x080100) hold no devices of ours.
_KINDS: Mapping[str, PciKind] = {
    BRIDGE_CLASS: "bridge",
    "0x080100": "bridge",
    "0x068000": "bridge",
    "0x068001": "bridge",
    "0x03": "gpu",
    "0x02": "nic",
}
_GIGATRANSFERS: Mapping[str, float] = {
    "2.5 GT/s": 2.5,
    "5 GT/s": 5,
    "8 GT/s": 8,
    "16 GT/s": 16,
    "32 GT/s": 32,
    "5.0 GT/s PCIe": 5,
    "8.0 GT/s PCIe": 8,
    "16.0 GT/s PCIe": 16,
    "32.0 GT/s PCIe": 32,
    "64.0 GT/s PCIe": 64,
}
KNOWN_SPEEDS = frozenset(_GIGATRANSFERS.values())
KNOWN_WIDTHS = (1, 2, 4, 8, 16, 32)


def pci_kind(class_code: str) -> PciKind | None:
    """None for a class that NCCL does not know; it then takes the device for a bridge."""
    return next((kind for start, kind in _KINDS.items() if class_code.startswith(start)), None)


def gigatransfers(link_speed: str) -> float | None:
    """GT/s per lane; None for what NCCL does not know, and then takes for 8 GT/s."""
    known = (value for start, value in _GIGATRANSFERS.items() if link_speed.startswith(start))
    return next(known, None)


def link_speed(gigatransfers_per_second: float) -> str:
    """The attribute, in the form that every generation has in NCCL's table."""
    return f"{gigatransfers_per_second:.1f} GT/s PCIe"
