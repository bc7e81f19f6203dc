"""A vendor's NCCL_IGNORE_CPU_AFFINITY ends the job where the pod has no CPU beside a GPU."""

import os
from pathlib import Path

import pytest

from kopeck_trainer.nccl.vendor_profile import SCRIPTS
from tests.unit.trainer.nccl.machine import (
    AZURE_GPUS,
    a_file,
    a_topology,
    environment_on,
    on_numa_node,
    with_gpus,
    with_numa_node,
)

VARIABLE = "NCCL_IGNORE_CPU_AFFINITY"


def with_cpus(root: Path, *lists: str) -> Path:
    """A machine whose GPUs are each on a NUMA node with these CPUs; the pod has 0-3."""
    for node, (gpu, cpus) in enumerate(zip(AZURE_GPUS, lists, strict=True)):
        with_numa_node(root, node, cpus)
        on_numa_node(root, gpu, node)
    return with_gpus(root)


@pytest.mark.parametrize("workers", [1, 2])
def test_it_is_turned_off_where_the_pod_has_no_cpu_beside_a_gpu(
    tmp_path: Path, workers: int
) -> None:
    machine = with_cpus(tmp_path, "0-47,96-143", "48-95,144-191")
    a_file(machine / "etc/nccl.conf", f"{VARIABLE}=1\n")
    found, (said,) = environment_on(machine, workers)
    assert found == {VARIABLE: "0"}
    assert said.endswith(f"no CPU beside the GPU at {AZURE_GPUS[1]}")


def test_a_script_may_set_it_too(tmp_path: Path) -> None:
    machine = with_cpus(tmp_path, "4", "5,6")
    a_file(machine / SCRIPTS[0], f"export {VARIABLE}=1")
    assert environment_on(machine, PATH=os.environ["PATH"])[0][VARIABLE] == "0"


@pytest.mark.parametrize("cpus", ["0-47", "3", "2-2,8", "", "0-7,16"])
def test_it_stays_where_the_pod_has_one_or_nobody_knows(tmp_path: Path, cpus: str) -> None:
    machine = with_cpus(tmp_path, cpus, cpus)
    a_file(machine / "etc/nccl.conf", f"{VARIABLE}=1\n")
    assert environment_on(machine) == ({}, [])


@pytest.mark.parametrize("conf", ["", f"{VARIABLE}=0", f"#{VARIABLE}=1", f"{VARIABLE}="])
def test_where_no_vendor_sets_it_there_is_nothing_to_turn_off(tmp_path: Path, conf: str) -> None:
    machine = with_cpus(tmp_path, "8", "9")
    a_file(machine / "etc/nccl.conf", conf)
    assert environment_on(machine) == ({}, [])


def test_the_users_own_stays(tmp_path: Path) -> None:
    machine = with_cpus(tmp_path, "8", "9")
    assert environment_on(machine, **{VARIABLE: "1"}) == ({VARIABLE: "1"}, [])


def test_the_users_file_comes_before_that_of_the_image(tmp_path: Path) -> None:
    machine = with_cpus(tmp_path, "8", "9")
    a_file(machine / "etc/nccl.conf", f"{VARIABLE}=1\n")
    own = a_file(tmp_path / "own.conf", f"{VARIABLE}=0\n{VARIABLE}=1\n")
    environ = {"NCCL_CONF_FILE": str(own)}
    assert environment_on(machine, **environ) == (environ, [])


def test_where_sysfs_does_not_know_the_node_the_topology_file_tells(tmp_path: Path) -> None:
    machine = with_cpus(tmp_path, "8", "9")
    for gpu in AZURE_GPUS:
        on_numa_node(machine, gpu, -1)
    a_file(machine / "etc/nccl.conf", f"{VARIABLE}=1\n")
    assert environment_on(machine) == ({}, [])
    file = {"NCCL_TOPO_FILE": str(a_topology(tmp_path / "t.xml", *AZURE_GPUS))}
    assert environment_on(machine, **file)[0] == file | {VARIABLE: "0"}
