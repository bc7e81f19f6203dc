"""Each rank runs on the CPUs beside its GPU."""

import json
import os
import sys
from pathlib import Path

import pytest

from kopeck_trainer.nccl.binding import cpus_of_ranks
from kopeck_trainer.nccl.machine import Machine
from kopeck_trainer.ranks import start_ranks
from tests.unit.trainer.nccl.machine import (
    AZURE_GPUS,
    POD_CPUS,
    a_file,
    a_topology,
    on_numa_node,
    with_gpus,
    with_numa_node,
)

Cpus = frozenset[int] | None


def two_nodes(root: Path, first: str = "0-1,8-9", second: str = "2-3,10-11") -> Path:
    """A GPU on each of two NUMA nodes; the pod may use CPUs 0 to 3."""
    for node, (gpu, cpus) in enumerate(zip(AZURE_GPUS, (first, second), strict=True)):
        on_numa_node(with_numa_node(root, node, cpus), gpu, node)
    return with_gpus(root)


def bound(root: Path, ranks: int = 2, **environ: str) -> tuple[list[Cpus], list[str]]:
    """By local rank, and what was said."""
    said: list[str] = []
    machine = Machine(root=root, addresses={}, cpus=POD_CPUS)
    return cpus_of_ranks(environ, ranks=ranks, machine=machine, say=said.append), said


FIRST, SECOND = frozenset({0, 1}), frozenset({2, 3})


def test_ranks_are_bound_to_the_cpus_of_their_gpus_node_that_the_pod_has(tmp_path: Path) -> None:
    found, said = bound(two_nodes(tmp_path))
    assert found == [FIRST, SECOND]
    assert said == [
        "local rank 0 runs on 2 of the pod's 4 CPUs, those of NUMA node 0 beside the GPU",
        "local rank 1 runs on 2 of the pod's 4 CPUs, those of NUMA node 1 beside the GPU",
    ]


def test_ranks_of_one_node_are_told_in_one_sentence(tmp_path: Path) -> None:
    machine = two_nodes(tmp_path)
    on_numa_node(machine, AZURE_GPUS[1], 0)
    found, (said,) = bound(machine)
    assert found == [FIRST, FIRST]
    assert said.startswith("local ranks 0, 1 run on 2 of")


def test_where_sysfs_does_not_know_the_node_the_topology_file_tells(tmp_path: Path) -> None:
    machine = two_nodes(tmp_path)
    on_numa_node(machine, AZURE_GPUS[0], -1)
    assert bound(machine)[0] == [None, SECOND]
    file = a_topology(tmp_path / "t.xml", AZURE_GPUS[0])
    a_file(file, file.read_text().replace('numaid="0"', 'numaid="1"'))
    assert bound(machine, NCCL_TOPO_FILE=str(file))[0] == [SECOND, SECOND]
    a_file(machine / "etc/nccl.conf", f"NCCL_TOPO_FILE={file}\n")
    assert bound(machine)[0] == [SECOND, SECOND]
    assert bound(machine, NCCL_TOPO_FILE="")[0] == [None, SECOND]


@pytest.mark.parametrize("numa_id", ["-1", "7", "one", ""])
def test_a_node_that_the_file_does_not_know_or_that_is_not_there_binds_nobody(
    tmp_path: Path, numa_id: str
) -> None:
    machine = two_nodes(tmp_path)
    for gpu in AZURE_GPUS:
        on_numa_node(machine, gpu, -1)
    file = a_topology(tmp_path / "t.xml", *AZURE_GPUS)
    a_file(file, file.read_text().replace('numaid="0"', f'numaid="{numa_id}"'))
    assert bound(machine, NCCL_TOPO_FILE=str(file)) == ([None, None], [])


@pytest.mark.parametrize(("first", "second"), [("8-9", "10-11"), ("0-7", "0-3"), ("", "")])
def test_nodes_that_have_none_or_all_of_the_pods_cpus_bind_nobody(
    tmp_path: Path, first: str, second: str
) -> None:
    assert bound(two_nodes(tmp_path, first, second)) == ([None, None], [])


def test_ranks_are_not_crowded_onto_a_small_rest_of_the_pods_cpus(tmp_path: Path) -> None:
    machine = two_nodes(tmp_path, first="0", second="1-3")
    assert bound(machine)[0] == [frozenset({0}), frozenset({1, 2, 3})]
    on_numa_node(machine, AZURE_GPUS[1], 0)
    assert bound(machine) == ([None, None], [])


def test_a_machine_that_tells_nothing_binds_nobody(tmp_path: Path) -> None:
    assert bound(tmp_path) == ([None, None], [])
    assert bound(with_gpus(tmp_path)) == ([None, None], [])


@pytest.mark.parametrize("ranks", [1, 3, 4])
def test_ranks_that_have_not_one_gpu_each_are_left_alone(tmp_path: Path, ranks: int) -> None:
    assert bound(two_nodes(tmp_path), ranks) == ([None] * ranks, [])


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        ("1", [SECOND]),
        ("1, 0", [SECOND, FIRST]),
        ("GPU-1f0e", [SECOND]),
        ("GPU-1f,GPU-0f", [SECOND, FIRST]),
        ("GPU-", [None]),
        ("GPU-7", [None]),
        ("MIG-1f0e", [None]),
        ("2", [None]),
        ("-1", [None]),
        ("", [None]),
    ],
)
def test_gpus_are_counted_as_cuda_shows_them(
    tmp_path: Path, visible: str, expected: list[Cpus]
) -> None:
    assert bound(two_nodes(tmp_path), len(expected), CUDA_VISIBLE_DEVICES=visible)[0] == expected


def test_gpus_are_counted_in_the_order_of_the_bus(tmp_path: Path) -> None:
    last, first = "10000:00:00.0", "2000:00:00.0"
    machine = with_gpus(tmp_path, last, first)
    with_numa_node(with_numa_node(machine, 0, "0-1"), 1, "2-3")
    on_numa_node(on_numa_node(machine, first, 0), last, 1)
    assert bound(machine)[0] == [FIRST, SECOND]


AFFINITY = (
    "import os, sys, json; json.dump(sorted(os.sched_getaffinity(0)), open(sys.argv[1], 'w'))"
)
own = sorted(os.sched_getaffinity(0))


@pytest.mark.skipif(len(own) < 2, reason="one CPU cannot be divided")
def test_a_rank_that_runs_is_on_its_cpus_and_the_launcher_on_all(tmp_path: Path) -> None:
    machine = two_nodes(tmp_path, str(own[0]), str(own[1]))
    pod = Machine(root=machine, addresses={}, cpus=frozenset(own))
    found = cpus_of_ranks({}, ranks=2, machine=pod, say=lambda _: None)
    assert affinities(tmp_path, [*found, None]) == [[own[0]], [own[1]], own]
    assert sorted(os.sched_getaffinity(0)) == own


def affinities(folder: Path, cpus: list[Cpus]) -> list[list[int]]:
    """What real ranks say of theirs."""
    program = ["sh", "-c", 'exec "$0" -c "$1" "$FILE"', sys.executable, AFFINITY]
    files = [folder / f"{rank}.json" for rank in range(len(cpus))]
    variables = [{"FILE": str(file)} for file in files]
    ranks = start_ranks(program, os.environ, variables, cpus_by_local_rank=cpus, first_rank=0)
    for pid in ranks.local_rank_by_pid:
        assert os.waitpid(pid, 0)[1] == 0
    return [json.loads(file.read_text()) for file in files]
