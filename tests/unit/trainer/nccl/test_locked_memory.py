"""How much memory a pod may lock, where it has a device that needs it."""

import resource
from pathlib import Path

import pytest

from kopeck_trainer.nccl.adapters import has_rdma_device
from kopeck_trainer.nccl.locked_memory import raise_limit, why_too_little
from tests.unit.trainer.nccl.machine import a_file

EIGHT_MIB = 8 * 1024**2
NO_CAPABILITY = "Name:\tpython3\nCapEff:\t0000000000000000\n"
IPC_LOCK = "Name:\tpython3\nCapEff:\t0000000000004000\n"


@pytest.mark.parametrize("limit_bytes", [0, EIGHT_MIB, 1024**3 - 1])
def test_a_small_limit_is_told_with_what_to_change(tmp_path: Path, limit_bytes: int) -> None:
    said = why_too_little(limit_bytes, a_file(tmp_path / "status", NO_CAPABILITY))
    assert said
    assert f"only {limit_bytes // 1024} KiB" in said
    assert "LimitMEMLOCK=infinity" in said


@pytest.mark.parametrize("limit_bytes", [resource.RLIM_INFINITY, 1024**3, 1024**4])
def test_a_large_limit_is_enough(tmp_path: Path, limit_bytes: int) -> None:
    assert why_too_little(limit_bytes, a_file(tmp_path / "status", NO_CAPABILITY)) is None


def test_no_limit_holds_for_who_has_the_capability(tmp_path: Path) -> None:
    assert why_too_little(EIGHT_MIB, a_file(tmp_path / "status", IPC_LOCK)) is None
    assert why_too_little(EIGHT_MIB, a_file(tmp_path / "other", "Name:\tpython3\n"))


def test_this_processes_limit_is_raised_as_far_as_it_may_be() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    try:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, hard))
        assert raise_limit() == hard
        assert resource.getrlimit(resource.RLIMIT_MEMLOCK) == (hard, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (soft, hard))


def test_a_pod_has_an_rdma_device_if_it_has_its_file(tmp_path: Path) -> None:
    assert not has_rdma_device(tmp_path)
    a_file(tmp_path / "dev/infiniband/rdma_cm")
    assert not has_rdma_device(tmp_path)
    a_file(tmp_path / "dev/infiniband/uverbs3")
    assert has_rdma_device(tmp_path)
