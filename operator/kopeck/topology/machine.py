"""The graph of a machine: NUMA nodes, PCIe switches, GPUs, NICs, and the links between them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from kopeck.topology.pcie import VIRTUAL_BUS

DeviceKind = Literal["gpu", "nic", "unknown"]


@dataclass(frozen=True)
class Link:
    """From a device or switch upwards; None where it is not known."""

    gigatransfers: float | None
    """GT/s of one lane."""
    lanes: int | None

    def __str__(self) -> str:
        if self.gigatransfers is None or self.lanes is None:
            return "link unknown"
        return f"{self.gigatransfers:g} GT/s × {self.lanes}"


@dataclass(frozen=True)
class Device:
    """A GPU or NIC; unknown where a file does not say which."""

    kind: DeviceKind
    bus_id: str
    link: Link
    class_code: str | None
    """As 0x030200; None where the file leaves it to the machine."""


@dataclass(frozen=True)
class Switch:
    """A PCIe bridge and what is below it."""

    bus_id: str
    link: Link
    below: tuple["Switch | Device", ...]

    @property
    def is_virtual(self) -> bool:
        """Made up by a file, to say which devices are close to each other."""
        return self.bus_id.startswith(VIRTUAL_BUS)


Part: TypeAlias = Switch | Device


@dataclass(frozen=True)
class Cpu:
    """What NCCL chooses its bandwidths by; familyid and modelid as CPUID gives them."""

    arch: str
    vendor: str
    family_id: int
    model_id: int


@dataclass(frozen=True)
class NumaNode:
    """A node of memory, its CPU (None where a file leaves it to the machine), what is below it."""

    numa_id: int
    cpu: Cpu | None
    below: tuple[Part, ...]


@dataclass(frozen=True)
class Machine:
    """All NUMA nodes; NVLink is not part of it: NCCL sees that in any pod with a GPU."""

    numa_nodes: tuple[NumaNode, ...]

    def devices(self) -> Iterator[Device]:
        for node in self.numa_nodes:
            yield from _devices(node.below)


def _devices(parts: tuple[Part, ...]) -> Iterator[Device]:
    for part in parts:
        if isinstance(part, Device):
            yield part
        else:
            yield from _devices(part.below)
