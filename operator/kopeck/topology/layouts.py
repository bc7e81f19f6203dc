"""Machines whose bus ids and switches their makers publish, each as a few rows."""

from collections.abc import Sequence

from kopeck.topology.machine import Cpu, Device, Link, Machine, NumaNode, Switch
from kopeck.topology.pcie import VIRTUAL_BUS

_LANES = 16
_GPU_CLASS = "0x030200"
_INFINIBAND_CLASS = "0x020700"
_ETHERNET_CLASS = "0x020000"

_CASCADE_LAKE = Cpu("x86_64", "GenuineIntel", 6, 85)
_SAPPHIRE_RAPIDS = Cpu("x86_64", "GenuineIntel", 6, 143)
_ROME = Cpu("x86_64", "AuthenticAMD", 23, 49)

# NUMA node, then its switches: on Azure each device has a PCI domain of its own, those of NICs
# from 0101; on AWS each switch has a bus.
_ND_A100_V4 = (
    (0, ("0003 0103 0004 0104",)),
    (1, ("0001 0101 0002 0102",)),
    (2, ("000d 0107 000e 0108",)),
    (3, ("000b 0105 000c 0106",)),
)
_ND_H100_V5 = (
    (0, ("0001 0101", "0002 0102", "0003 0103", "0008 0104")),
    (1, ("0009 0105", "000a 0106", "000b 0107", "000c 0108")),
)
_P4D = (
    (0, ("10:1c 10:1d 10:1b", "20:1c 20:1d 20:1b")),
    (1, ("90:1c 90:1d 90:1b", "a0:1c a0:1d a0:1b")),
)
_FIRST_NIC_DOMAIN = 0x101
_P4D_NIC = "1b"

_Rows = Sequence[tuple[int, Sequence[str]]]


def nd_a100_v4() -> Machine:
    return _machine(_ND_A100_V4, _ROME, Link(16, _LANES))


def nd_h100_v5() -> Machine:
    return _machine(_ND_H100_V5, _SAPPHIRE_RAPIDS, Link(32, _LANES))


def p4d() -> Machine:
    return _machine(_P4D, _CASCADE_LAKE, Link(8, _LANES))


def _machine(rows: _Rows, cpu: Cpu, link: Link) -> Machine:
    """One link speed for all; switches are virtual and numbered through."""
    nodes, number = [], 0
    for numa_id, switches in rows:
        below = []
        for places in switches:
            number += 1
            devices = tuple(_device(place, link) for place in places.split())
            below.append(Switch(f"{VIRTUAL_BUS}ff:{number:02x}.0", link, devices))
        nodes.append(NumaNode(numa_id, cpu, tuple(below)))
    return Machine(tuple(nodes))


def _device(place: str, link: Link) -> Device:
    if ":" in place:
        return _aws_device(place, link)
    bus_id = f"{place}:00:00.0"
    if int(place, 16) >= _FIRST_NIC_DOMAIN:
        return Device("nic", bus_id, link, _INFINIBAND_CLASS)
    return Device("gpu", bus_id, link, _GPU_CLASS)


def _aws_device(place: str, link: Link) -> Device:
    bus_id = f"0000:{place}.0"
    if place.endswith(_P4D_NIC):
        return Device("nic", bus_id, link, _ETHERNET_CLASS)
    return Device("gpu", bus_id, link, _GPU_CLASS)
