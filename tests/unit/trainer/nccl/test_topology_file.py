"""A topology file that NCCL would stop at or silently ignore is caught before any rank starts."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kopeck_trainer import exit_codes
from kopeck_trainer.errors import ConfigurationError
from kopeck_trainer.nccl.gpus import gpu_bus_ids
from kopeck_trainer.nccl.vendor_profile import SCRIPTS
from tests.unit.trainer.nccl.machine import (
    AZURE_GPUS,
    a_file,
    a_topology,
    environment_on,
    with_gpu_of_another_pod,
    with_gpus,
)


def test_a_file_that_describes_all_gpus_stays(tmp_path: Path) -> None:
    file = a_topology(tmp_path / "t.xml", "ffff:ff:01.0", *AZURE_GPUS, "0003:00:00.0")
    found, said = environment_on(with_gpus(tmp_path), NCCL_TOPO_FILE=str(file))
    assert (found, said) == ({"NCCL_TOPO_FILE": str(file)}, [])


@pytest.mark.parametrize(
    ("described", "sentence"),
    [
        ((), "it does not describe 2 of 2 GPUs, the first at 0001:00:00.0"),
        (("0000:1b:00.0", "0000:5d:00.0"), "it does not describe 2 of 2 GPUs"),
        (AZURE_GPUS[:1], "it does not describe 1 of 2 GPUs, the first at 0002:00:00.0"),
        (("00000001:00:00.0", "0002:00:00.0"), "it does not describe 1 of 2 GPUs"),
    ],
)
def test_a_file_of_another_machine_is_unset_with_a_sentence(
    tmp_path: Path, described: tuple[str, ...], sentence: str
) -> None:
    file = a_topology(tmp_path / "t.xml", *described)
    found, (said,) = environment_on(with_gpus(tmp_path), NCCL_TOPO_FILE=str(file), A="b")
    assert found == {"A": "b"}
    assert said.startswith(f"NCCL_TOPO_FILE={file} is unset: {sentence}")


def test_capitals_match_nothing_as_nccl_compares_text(tmp_path: Path) -> None:
    machine = with_gpus(tmp_path, "0000:1b:00.0")
    file = a_topology(tmp_path / "t.xml", "0000:1B:00.0")
    assert environment_on(machine, NCCL_TOPO_FILE=str(file))[0] == {}


@pytest.mark.parametrize(
    ("made_as", "reason"),
    [
        (None, "No such file or directory"),
        ("a folder", "Is a directory"),
        (b"", "it does not describe"),
    ],
)
def test_a_file_that_is_none_is_unset(
    tmp_path: Path, made_as: str | bytes | None, reason: str
) -> None:
    file = tmp_path / "t.xml"
    if isinstance(made_as, bytes):
        file.write_bytes(made_as)
    elif made_as:
        file.mkdir()
    found, (said,) = environment_on(with_gpus(tmp_path), workers=1, NCCL_TOPO_FILE=str(file))
    assert found == {}
    assert reason in said


def test_without_gpus_nothing_is_said(tmp_path: Path) -> None:
    for gone in ("/no/such/file", ""):
        found, said = environment_on(tmp_path, NCCL_TOPO_FILE=gone)
        assert (found, said) == ({"NCCL_TOPO_FILE": gone}, [])


def test_an_empty_variable_is_the_users_own(tmp_path: Path) -> None:
    found, said = environment_on(with_gpus(tmp_path), NCCL_TOPO_FILE="")
    assert (found, said) == ({"NCCL_TOPO_FILE": ""}, [])


def test_kopecks_file_gives_way_to_the_machines_own(tmp_path: Path) -> None:
    machine = with_gpus(tmp_path)
    a_file(machine / "var/run/nvidia-topologyd/virtualTopology.xml", "<system/>")
    found, (said,) = environment_on(machine, NCCL_TOPO_FILE="/etc/kopeck/topology.xml")
    assert found == {}
    assert "brings its own" in said
    users = a_topology(tmp_path / "t.xml", *AZURE_GPUS)
    assert environment_on(machine, NCCL_TOPO_FILE=str(users))[1] == []


@pytest.mark.parametrize(
    ("name", "bus_id"),
    [
        ("0000:1b:00.0", "0000:1b:00.0"),
        ("0000:1B:00.0", "0000:1b:00.0"),
        ("00000000:1b:00.0", "0000:1b:00.0"),
        ("10000:1b:00.0", "10000:1b:00.0"),
    ],
)
def test_bus_ids_are_written_as_nccl_writes_them(tmp_path: Path, name: str, bus_id: str) -> None:
    assert gpu_bus_ids(with_gpus(tmp_path, name)) == [bus_id]


def test_gpus_of_other_pods_need_not_be_described(tmp_path: Path) -> None:
    machine = with_gpu_of_another_pod(with_gpus(tmp_path), "0003:00:00.0", minor=7)
    assert gpu_bus_ids(machine) == list(AZURE_GPUS)
    file = a_topology(tmp_path / "t.xml", *AZURE_GPUS)
    assert environment_on(machine, NCCL_TOPO_FILE=str(file))[1] == []


def test_a_pod_without_gpus_on_a_node_with_gpus_is_told_nothing(tmp_path: Path) -> None:
    machine = with_gpu_of_another_pod(tmp_path, "0003:00:00.0", minor=0)
    found, said = environment_on(machine, NCCL_TOPO_FILE="/no/such/file")
    assert (found, said) == ({"NCCL_TOPO_FILE": "/no/such/file"}, [])


def test_what_is_no_bus_id_is_no_gpu(tmp_path: Path) -> None:
    assert gpu_bus_ids(with_gpus(tmp_path, "capabilities")) == []


@pytest.mark.parametrize(
    ("old", "new", "line", "wrong", "instead"),
    [
        ("  <cpu", "\t<cpu", 2, "a tab between tags", "indent by blanks"),
        ("<system", '<?xml version="1.0"?>\n<system', 1, "a prolog", "begin with <system>"),
        ("</cpu>", "", 6, "</system> closes what is not open", "write </cpu>"),
        ('version="1"', 'version="2"', 1, 'system has version "2"', 'write version="1"'),
        (' numaid="0"', "", 2, "cpu has no numaid", 'write numaid="0" or what is true'),
        ("</system>\n", "", 1, "system is not closed", "write </system>"),
    ],
)
@pytest.mark.parametrize("workers", [1, 2])
def test_a_broken_file_stops_the_job_with_one_sentence(
    tmp_path: Path, workers: int, old: str, new: str, line: int, wrong: str, instead: str
) -> None:
    file = a_topology(tmp_path / "t.xml", *AZURE_GPUS)
    a_file(file, file.read_text().replace(old, new, 1))
    with pytest.raises(ConfigurationError) as stopped:
        environment_on(with_gpus(tmp_path), workers, NCCL_TOPO_FILE=str(file))
    told = f"NCCL_TOPO_FILE: NCCL stops at {file}, line {line}: {wrong}; {instead}"
    assert str(stopped.value) == told
    assert stopped.value.exit_code == exit_codes.CONFIGURATION


def test_what_is_no_text_stops_the_job(tmp_path: Path) -> None:
    (tmp_path / "t.xml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigurationError, match="text between tags"):
        environment_on(with_gpus(tmp_path), NCCL_TOPO_FILE=str(tmp_path / "t.xml"))


def test_a_broken_file_of_another_machine_stops_the_job_too(tmp_path: Path) -> None:
    file = a_topology(tmp_path / "t.xml", "0000:1b:00.0")
    a_file(file, file.read_text().replace("  <cpu", "\t<cpu"))
    with pytest.raises(ConfigurationError, match="line 2: a tab"):
        environment_on(with_gpus(tmp_path), NCCL_TOPO_FILE=str(file))


def test_what_nccl_only_ignores_stops_nothing(tmp_path: Path) -> None:
    file = a_topology(tmp_path / "t.xml", *AZURE_GPUS)
    a_file(file, file.read_text().replace('class="0x030200"', 'class="0x030200" colour="red"'))
    found, said = environment_on(with_gpus(tmp_path), NCCL_TOPO_FILE=str(file))
    assert (found, said) == ({"NCCL_TOPO_FILE": str(file)}, [])


def test_a_broken_file_stops_nothing_where_nccl_does_not_run(tmp_path: Path) -> None:
    broken = {"NCCL_TOPO_FILE": str(a_file(tmp_path / "t.xml", "\t"))}
    assert environment_on(tmp_path, **broken) == (broken, [])


def test_a_bus_id_in_a_comment_or_elsewhere_describes_nothing(tmp_path: Path) -> None:
    file = a_topology(tmp_path / "t.xml", AZURE_GPUS[0])
    comment = f'<!-- <pci busid="{AZURE_GPUS[1]}"/> -->\n'
    a_file(file, comment + file.read_text())
    found, (said,) = environment_on(with_gpus(tmp_path), NCCL_TOPO_FILE=str(file))
    assert found == {}
    assert "1 of 2 GPUs, the first at 0002:00:00.0" in said


def test_a_file_that_the_image_names_is_checked_too(tmp_path: Path) -> None:
    machine = with_gpus(tmp_path)
    foreign = a_topology(tmp_path / "foreign.xml", "0000:1b:00.0")
    a_file(machine / "etc/nccl.conf", f"NCCL_TOPO_FILE={foreign}\n")
    found, (said,) = environment_on(machine)
    assert found == {"NCCL_TOPO_FILE": ""}
    assert said.startswith(f"NCCL_TOPO_FILE={foreign} of NCCL's configuration file is set to")
    a_file(foreign, "\t")
    with pytest.raises(ConfigurationError, match="a tab"):
        environment_on(machine)
    a_topology(foreign, *AZURE_GPUS)
    assert environment_on(machine) == ({}, [])


def test_with_a_wrong_file_gone_the_images_is_next(tmp_path: Path) -> None:
    machine = with_gpus(tmp_path)
    right = a_topology(tmp_path / "right.xml", *AZURE_GPUS)
    a_file(machine / "etc/nccl.conf", f"NCCL_TOPO_FILE={right}\n")
    assert environment_on(machine, NCCL_TOPO_FILE="/no/such/file")[0] == {}
    a_topology(right, "0000:1b:00.0")
    found, said = environment_on(machine, NCCL_TOPO_FILE="/no/such/file")
    assert found == {"NCCL_TOPO_FILE": ""}
    assert len(said) == 2


def test_a_file_that_a_vendors_script_names_is_checked_too(tmp_path: Path) -> None:
    machine = with_gpus(tmp_path)
    a_file(machine / SCRIPTS[0], "export NCCL_TOPO_FILE=/no/such/file")
    found, (said,) = environment_on(machine, PATH=os.environ["PATH"])
    assert "NCCL_TOPO_FILE" not in found
    assert said.startswith("NCCL_TOPO_FILE=/no/such/file is unset")


def test_the_rules_bring_nothing_but_the_standard_library_into_the_launcher() -> None:
    program = (
        "import json, sys, kopeck_trainer.nccl.topology_file; print(json.dumps([*sys.modules]))"
    )
    bare = subprocess.run(
        [sys.executable, "-c", "import json, sys; print(json.dumps([*sys.modules]))"],
        capture_output=True,
        check=True,
    )
    ours = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    brought = set(json.loads(ours.stdout)) - set(json.loads(bare.stdout))
    packages = {name.partition(".")[0] for name in brought} - sys.stdlib_module_names
    assert packages == {"kopeck", "kopeck_trainer"}
