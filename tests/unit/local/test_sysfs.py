"""A machine is read from /sys as NCCL reads it there."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from kopeck.api.errors import ConfigError
from kopeck.cli import app
from kopeck.local.sysfs import read_machine
from kopeck.topology.check import check
from kopeck.topology.machine import Cpu, Device, Link, Machine, NumaNode, Switch
from kopeck.topology.parse import parse_machine
from kopeck.topology.writer import to_xml

_GEN5 = "32.0 GT/s PCIe"
_UP = "pci0000:15/0000:15:01.0/0000:16:00.0"
_CPU = "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\nmodel name\t: Xeon\n"


def _device(root: Path, place: str, **facts: str) -> Path:
    """A folder of sysfs, with a file for each fact, and its link in the list of devices."""
    folder = root / "sys/devices" / place
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in facts.items():
        (folder / (name if name != "class_" else "class")).write_text(f"{value}\n")
    listed = root / "sys/bus/pci/devices" / folder.name
    listed.parent.mkdir(parents=True, exist_ok=True)
    listed.symlink_to(Path("../../../devices") / place)
    return folder


def _link(speed: str = _GEN5, lanes: str = "16") -> dict[str, str]:
    return {"max_link_speed": speed, "max_link_width": lanes}


def _gpu(root: Path, place: str, **facts: str) -> None:
    gpu = {"class_": "0x030200", "vendor": "0x10de", "numa_node": "0", **_link()}
    _device(root, place, **gpu | facts)


def _nic(root: Path, place: str, **facts: str) -> Path:
    nic = {"class_": "0x020700", "vendor": "0x15b3", "numa_node": "0", **_link()}
    folder = _device(root, place, **nic | facts)
    (folder / "infiniband").mkdir()
    return folder


def _bridge(root: Path, place: str, **facts: str) -> None:
    _device(root, place, **{"class_": "0x060400", "vendor": "0x1000", **_link(), **facts})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root port, and below it a switch with two downstream ports: a GPU and a NIC."""
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text(_CPU)
    for bridge in (
        "pci0000:15/0000:15:01.0",
        _UP,
        f"{_UP}/0000:17:00.0",
        f"{_UP}/0000:17:01.0",
    ):
        _bridge(tmp_path, bridge)
    _gpu(tmp_path, f"{_UP}/0000:17:00.0/0000:18:00.0")
    _nic(tmp_path, f"{_UP}/0000:17:01.0/0000:19:00.0")
    return tmp_path


_FULL = Link(32, 16)
_MACHINE = Machine(
    (
        NumaNode(
            0,
            Cpu("x86_64", "GenuineIntel", 6, 143),
            (
                Switch(
                    "0000:16:00.0",
                    _FULL,
                    (
                        Device("gpu", "0000:18:00.0", _FULL, "0x030200"),
                        Device("nic", "0000:19:00.0", _FULL, "0x020700"),
                    ),
                ),
            ),
        ),
    )
)


def test_gpu_and_nic_share_the_switch_by_its_upstream_port(root: Path) -> None:
    assert read_machine(root) == _MACHINE
    assert check(to_xml(_MACHINE).encode()) == []


def test_a_device_on_a_root_port_is_below_no_switch(root: Path) -> None:
    _bridge(root, "pci0000:80/0000:80:01.0")
    _gpu(root, "pci0000:80/0000:80:01.0/0000:81:00.0", numa_node="1")
    node = read_machine(root).numa_nodes[1]
    assert (node.numa_id, node.below) == (
        1,
        (Device("gpu", "0000:81:00.0", _FULL, "0x030200"),),
    )


def test_a_link_is_as_slow_as_its_slower_end(root: Path) -> None:
    _bridge(root, "pci0000:80/0000:80:01.0", **_link("16.0 GT/s PCIe", "8"))
    _gpu(root, "pci0000:80/0000:80:01.0/0000:81:00.0", numa_node="1")
    assert [each.link for each in read_machine(root).devices()][-1] == Link(16, 8)


def test_a_switch_below_a_switch_keeps_its_place(root: Path) -> None:
    inner = f"{_UP}/0000:17:02.0/0000:1a:00.0"
    for bridge in (f"{_UP}/0000:17:02.0", inner, f"{inner}/0000:1b:00.0"):
        _bridge(root, bridge)
    _gpu(root, f"{inner}/0000:1b:00.0/0000:1c:00.0")
    (outer,) = read_machine(root).numa_nodes[0].below
    assert isinstance(outer, Switch)
    assert outer.below[2] == Switch(
        "0000:1a:00.0", _FULL, (Device("gpu", "0000:1c:00.0", _FULL, "0x030200"),)
    )


def test_other_devices_are_left_out(root: Path) -> None:
    _device(root, "pci0000:00/0000:00:02.0", class_="0x030000", vendor="0x1a03")
    _device(root, "pci0000:00/0000:00:03.0", class_="0x020000", vendor="0x8086")
    _device(root, "pci0000:00/0000:00:04.0", class_="0x010802", vendor="0x144d")
    assert read_machine(root) == _MACHINE


def test_what_a_virtual_machine_hides_stays_unknown(tmp_path: Path) -> None:
    _gpu(tmp_path, "pci0000:00/0000:00:06.0", numa_node="-1", **_link("Unknown", "0"))
    machine = read_machine(tmp_path)
    gpu = Device("gpu", "0000:00:06.0", Link(None, None), "0x030200")
    assert machine == Machine((NumaNode(-1, None, (gpu,)),))
    assert check(to_xml(machine).encode()) == []


@pytest.mark.parametrize("has_nic", [False, True])
def test_a_machine_without_a_gpu_is_refused(tmp_path: Path, has_nic: bool) -> None:  # noqa: FBT001
    if has_nic:
        _nic(tmp_path, "pci0000:00/0000:00:05.0")
    with pytest.raises(ConfigError, match="has no GPU of NVIDIA"):
        read_machine(tmp_path)


def test_capture_prints_a_file_that_check_passes(root: Path) -> None:
    result = CliRunner().invoke(app, ["topology", "capture", "--root", str(root)])
    assert (result.exit_code, result.stderr) == (0, "")
    assert parse_machine(result.stdout.encode(), "captured") == _MACHINE


def test_capture_says_when_the_file_gains_nothing(tmp_path: Path) -> None:
    _gpu(tmp_path, "pci0000:00/0000:00:06.0", numa_node="-1")
    result = CliRunner().invoke(app, ["topology", "capture", "--root", str(tmp_path)])
    assert result.exit_code == 0
    assert "no switch" in result.stderr
    assert "0000:00:06.0" in result.stdout
