"""A topology file that NCCL would silently ignore is caught before any rank starts."""

from pathlib import Path

import pytest

from kopeck_trainer.nccl.gpus import gpu_bus_ids
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
        (b"\xff\xfe\x00", "it does not describe"),
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
