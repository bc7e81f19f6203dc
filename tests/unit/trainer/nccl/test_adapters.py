"""Which RDMA adapters NCCL is told of."""

from pathlib import Path

import pytest

from tests.unit.trainer.nccl.machine import (
    a_file,
    environment_on,
    with_adapter,
    with_gpus,
    with_vendor,
)


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """An Azure ND machine: InfiniBand, and the virtual machine's accelerated Ethernet."""
    with_adapter(with_gpus(tmp_path), "mlx5_an0", "Ethernet")
    for name in ("mlx5_ib1", "mlx5_ib0"):
        with_adapter(tmp_path, name, "InfiniBand")
    return tmp_path


def test_ethernet_beside_infiniband_is_left_out(mixed: Path) -> None:
    found, (said,) = environment_on(mixed)
    assert found == {"NCCL_IB_HCA": "=mlx5_ib0,mlx5_ib1"}
    assert said.startswith("NCCL_IB_HCA==mlx5_ib0,mlx5_ib1: ")


def test_what_the_user_names_stays(mixed: Path) -> None:
    for own in ("mlx5", ""):
        assert environment_on(mixed, NCCL_IB_HCA=own) == ({"NCCL_IB_HCA": own}, [])


@pytest.mark.parametrize("where", ["etc/nccl.conf", "home/.nccl.conf", "named"])
def test_what_a_file_of_nccl_names_stays(mixed: Path, where: str) -> None:
    a_file(mixed / where, "NCCL_IB_HCA=mlx5")
    home = {"HOME": str(mixed / "home")}
    named = {"NCCL_CONF_FILE": str(mixed / "named")} if where == "named" else {}
    assert "NCCL_IB_HCA" not in environment_on(mixed, **home, **named)[0]


def test_a_comment_in_a_file_names_nothing(mixed: Path) -> None:
    a_file(mixed / "etc/nccl.conf", "#NCCL_IB_HCA=mlx5\nNCCL_IB_HCA\n")
    assert "NCCL_IB_HCA" in environment_on(mixed)[0]


@pytest.mark.parametrize(
    "adapters",
    [
        [],
        [("mlx5_0", "InfiniBand", "4: ACTIVE")],
        [("mlx5_0", "Ethernet", "4: ACTIVE"), ("mlx5_1", "Ethernet", "4: ACTIVE")],
        [("mlx5_0", "InfiniBand", "4: ACTIVE"), ("mlx5_1", "Ethernet", "1: DOWN")],
        [("mlx5_0", "InfiniBand", "1: DOWN"), ("mlx5_1", "Ethernet", "4: ACTIVE")],
        [("mlx5_an", "Ethernet", "4: ACTIVE")]
        + [(f"mlx5_{index}", "InfiniBand", "4: ACTIVE") for index in range(33)],
    ],
)
def test_nothing_is_named_where_nothing_must_be_left_out(
    tmp_path: Path, adapters: list[tuple[str, str, str]]
) -> None:
    for adapter in adapters:
        with_adapter(tmp_path, *adapter)
    assert environment_on(with_gpus(tmp_path)) == ({}, [])


def test_nothing_is_named_without_gpus_or_with_one_worker(mixed: Path) -> None:
    assert environment_on(mixed, workers=1) == ({}, [])
    assert environment_on(with_adapter(mixed / "other", "mlx5_0", "InfiniBand")) == ({}, [])


def test_nothing_is_named_where_the_vendors_plugin_chooses(mixed: Path) -> None:
    assert environment_on(with_vendor(mixed, "Amazon EC2")) == ({}, [])
