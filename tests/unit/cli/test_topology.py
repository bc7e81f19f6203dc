"""`kopeck topology`: data on standard output, the verdict in the exit code."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from kopeck.api.errors import ConfigError
from kopeck.cli import app
from kopeck.topology.library import INSTANCE_TYPES
from kopeck.topology.parse import parse_machine
from tests.unit.topology.files import GOOD


def _topology(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["topology", *arguments], env={"COLUMNS": "80"})


def _file(folder: Path, content: str) -> str:
    file = folder / "topology.xml"
    file.write_text(content)
    return str(file)


def test_a_good_file_passes(tmp_path: Path) -> None:
    result = _topology("check", _file(tmp_path, GOOD))
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "no violations\n")


def test_each_violation_is_a_line_with_what_to_write(tmp_path: Path) -> None:
    file = _file(tmp_path, GOOD.replace("  <cpu", "\t<cpu").replace("32.0 GT/s PCIe", "Gen5", 1))
    result = _topology("check", file)
    unknown_speed = (
        'NCCL knows no link_speed "Gen5" and takes it for 8 GT/s; write it as in "32.0 GT/s PCIe"'
    )
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        f"{file}:2: fatal: a tab between tags; indent by blanks",
        f"{file}:3: ignored: {unknown_speed}",
    ]


def test_advice_is_printed_and_passes(tmp_path: Path) -> None:
    file = _file(tmp_path, GOOD.replace('numaid="0"', 'numaid="0" affinity="ff"'))
    result = _topology("check", file)
    assert result.exit_code == 0
    assert result.stdout.startswith(f"{file}:2: advice: affinity beats")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    result = _topology("check", str(tmp_path / "none.xml"))
    assert isinstance(result.exception, ConfigError)
    assert "none.xml: cannot be read (No such file or directory)" in str(result.exception)


@pytest.mark.parametrize("name", [name for each in INSTANCE_TYPES for name in each.names])
def test_every_type_is_shown_in_lines_that_fit(name: str) -> None:
    lines = _topology("show", name).stdout.splitlines()
    assert name in lines[0]
    tree = [line for line in lines if not line.startswith("source: ")]
    assert len(lines) > len(tree)
    assert max(map(len, tree)) <= 80


def test_the_tree_tells_what_is_not_known_and_why_there_is_no_file() -> None:
    shown = " ".join(_topology("show", "p5.48xlarge").stdout.replace("│", " ").split())
    assert "8 × NVIDIA H100" in shown
    assert "32 × EFA" in shown
    assert "not known: NUMA nodes, PCIe switches, link speeds, bus ids" in shown
    assert "NCCL_TOPO_FILE would disable that" in shown


def test_the_tree_of_a_known_machine_has_its_switches() -> None:
    lines = _topology("show", "p4d.24xlarge").stdout.splitlines()
    assert lines[3:6] == [
        "├── NUMA 0",
        "│   ├── virtual switch ffff:ff:01.0  8 GT/s × 16",
        "│   │   ├── GPU 0000:10:1c.0  8 GT/s × 16",
    ]


def test_the_file_and_the_document_are_of_the_same_machine() -> None:
    name = "Standard_ND96isr_H200_v5"
    machine = parse_machine(_topology("show", name, "--format", "xml").stdout.encode(), name)
    document = json.loads(_topology("show", name, "--format", "json").stdout)
    switches = [switch for numa in document["machine"] for switch in numa["below"]]
    assert [each.bus_id for each in machine.devices()] == [
        device["busId"] for switch in switches for device in switch["below"]
    ]
    assert document["topologyFile"] == "needed"


def test_the_drawing_has_a_line_for_each_link() -> None:
    drawn = _topology("show", "Standard_ND96asr_v4", "--format", "dot").stdout
    assert drawn.count(" -- ") == 4 + 16
    assert '"ffff:ff:01.0" -- "0103:00:00.0" [label="16 GT/s × 16"];' in drawn


@pytest.mark.parametrize("form", ["xml", "dot"])
def test_no_file_is_made_up_for_what_is_not_known(form: str) -> None:
    result = _topology("show", "p5.48xlarge", "--format", form)
    assert result.stdout == ""
    assert isinstance(result.exception, ConfigError)
    assert "are not publicly known" in str(result.exception)


def test_a_type_without_a_known_machine_has_null_in_its_document() -> None:
    document = json.loads(_topology("show", "g6.48xlarge", "--format", "json").stdout)
    assert (document["machine"], document["nics"], document["gpus"]) == (None, None, 8)
