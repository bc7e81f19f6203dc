"""A machine put together from its devices and the switches above each."""

from collections.abc import Sequence
from dataclasses import dataclass

from kopeck.topology.machine import Cpu, Device, Link, Machine, NumaNode, Part, Switch


@dataclass(frozen=True)
class Place:
    """Where a device sits: its NUMA node, -1 if unknown, and its switches from the CPU down."""

    device: Device
    numa_id: int
    switches: tuple[tuple[str, Link], ...]
    """The bus id of each, and its link upwards."""


def machine_of(places: Sequence[Place], cpu: Cpu | None) -> Machine:
    """The machine; what shares a switch is below it once, in the order of `places`."""
    numa_ids = sorted({place.numa_id for place in places})
    return Machine(
        tuple(
            NumaNode(numa_id, cpu, _below(0, [each for each in places if each.numa_id == numa_id]))
            for numa_id in numa_ids
        )
    )


def _below(depth: int, places: list[Place]) -> tuple[Part, ...]:
    """The parts at a depth: devices without a further switch, and switches with all of theirs."""
    groups: dict[str, list[Place]] = {}
    for place in places:
        groups.setdefault(_bus_id_at(depth, place), []).append(place)
    return tuple(_part(depth, group) for group in groups.values())


def _bus_id_at(depth: int, place: Place) -> str:
    return place.switches[depth][0] if depth < len(place.switches) else place.device.bus_id


def _part(depth: int, group: list[Place]) -> Part:
    first = group[0]
    if depth == len(first.switches):
        return first.device
    bus_id, link = first.switches[depth]
    return Switch(bus_id, link, _below(depth + 1, group))
