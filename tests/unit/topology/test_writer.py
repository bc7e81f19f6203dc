"""What is written breaks no rule and says what the makers' own files say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopeck.api.errors import ConfigError
from kopeck.topology.check import check
from kopeck.topology.library import INSTANCE_TYPES, known_instance_type
from kopeck.topology.machine import Cpu, Device, Link, Machine, NumaNode, Part, Switch
from kopeck.topology.parse import parse_machine
from kopeck.topology.pcie import KNOWN_SPEEDS, KNOWN_WIDTHS
from kopeck.topology.writer import to_xml
from tests.unit.topology.files import GOOD, needs_reference_files, reference
from tests.unit.topology.nccl_reader import NcclReader

_PUBLISHED = [
    ("p4d.24xlarge", "aws_p4d.xml"),
    ("Standard_ND96asr_v4", "azure_ndv4.xml"),
    ("Standard_ND96isr_H100_v5", "azure_ndv5.xml"),
]


@needs_reference_files
@pytest.mark.parametrize(("name", "file"), _PUBLISHED)
def test_our_file_describes_the_machine_of_its_makers_file(name: str, file: str) -> None:
    ours = known_instance_type(name).machine
    assert ours == parse_machine(reference(file), file)
    assert ours
    assert parse_machine(to_xml(ours).encode(), name) == ours


@pytest.mark.parametrize(
    "machine",
    [each.machine for each in INSTANCE_TYPES if each.machine],
    ids=[each.names[0] for each in INSTANCE_TYPES if each.machine],
)
def test_our_files_break_no_rule_and_beat_nothing_that_nccl_finds(machine: Machine) -> None:
    content = to_xml(machine).encode()
    assert check(content) == []
    assert NcclReader(content).ignored == []


@needs_reference_files
def test_a_dump_of_a_virtual_machine_has_its_gpus_and_no_switch() -> None:
    machine = parse_machine(reference("h200x2_dump.xml"), "dump")
    assert [(each.kind, each.bus_id) for each in machine.devices()] == [
        ("gpu", "0000:00:06.0"),
        ("gpu", "0000:00:07.0"),
    ]
    assert machine.numa_nodes[0].numa_id == -1
    assert check(to_xml(machine).encode()) == []


def test_what_a_file_leaves_to_the_machine_stays_unknown() -> None:
    content = b'<system version="1"><cpu numaid="1"><pci busid="0000:00:16.0"/></cpu></system>'
    machine = parse_machine(content, "file")
    assert machine == Machine(
        (NumaNode(1, None, (Device("unknown", "0000:00:16.0", Link(None, None), None),)),)
    )
    assert check(to_xml(machine).encode()) == []


def test_a_file_that_stops_nccl_is_refused_with_its_line() -> None:
    content = GOOD.replace('"0x030200"', "'0x030200'").encode()
    with pytest.raises(ConfigError, match=r"^t\.xml: line 4: the value of class is in single"):
        parse_machine(content, "t.xml")


_LINKS = st.builds(Link, st.sampled_from(sorted(KNOWN_SPEEDS)), st.sampled_from(KNOWN_WIDTHS))
_CPUS = st.sampled_from([None, Cpu("x86_64", "AuthenticAMD", 23, 49)])


@st.composite
def _machines(draw: st.DrawFn) -> Machine:
    number = 0

    def bus_id(domain: int) -> str:
        nonlocal number
        number += 1
        return f"{domain:04x}:{number:02x}:00.0"

    def part(depth: int) -> Part:
        kind = draw(st.sampled_from(["gpu", "nic", "switch"][: 3 if depth else 2]))
        if kind == "switch":
            below = tuple(part(depth - 1) for _ in range(draw(st.integers(0, 3))))
            return Switch(bus_id(0xFFFF), draw(_LINKS), below)
        domain = draw(st.integers(0, 0x1FFFF))
        if kind == "gpu":
            return Device("gpu", bus_id(domain), draw(_LINKS), "0x030200")
        return Device("nic", bus_id(domain), draw(_LINKS), "0x020700")

    return Machine(
        tuple(
            NumaNode(numa_id, draw(_CPUS), tuple(part(2) for _ in range(draw(st.integers(0, 2)))))
            for numa_id in range(draw(st.integers(1, 2)))
        )
    )


@given(_machines())
def test_a_written_machine_breaks_no_rule_and_is_read_as_it_was(machine: Machine) -> None:
    content = to_xml(machine).encode()
    assert [each for each in check(content) if each.rule.name != "room"] == []
    if not check(content):
        assert parse_machine(content, "file") == machine
