"""`kopeck topology needs` reads a node of a real API server, and says what pods need there."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from kopeck.api.errors import ConfigError
from kopeck.cli import app

GPUS = {"nvidia.com/gpu": "8", "pods": "0"}  # no pod of another test fits


def said(control_plane: Any, node: str, *options: str) -> str:
    arguments = ["topology", "needs", node, f"--kubeconfig={control_plane.kubeconfig}", *options]
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "200"}, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize(
    ("instance_type", "offered", "wanted", "unwanted"),
    [
        (
            "p5.48xlarge",
            {"vpc.amazonaws.com/efa": "32"},
            ["aws-efa", "request vpc.amazonaws.com/efa: 32", "NCCL_TOPO_FILE is not set: the OFI"],
            "set NCCL_TOPO_FILE",
        ),
        (
            "Standard_ND96isr_H100_v5",
            {"rdma/ib": "8"},
            ["azure-nd", "request rdma/ib: 8", "set NCCL_TOPO_FILE=/etc/kopeck/topology.xml"],
            "EFA",
        ),
        (
            "Standard_ND96isr_H100_v9",
            {"rdma/ib": "8"},
            ["azure-nd", "the hosts of Standard_ND96isr_H100_v9 have no topology file"],
            "mount the host's file",
        ),
        ("box", {}, ["other", "no fabric is known"], "request"),
    ],
)
def test_a_nodes_needs_are_told_with_their_reasons(
    control_plane: Any,
    instance_type: str,
    offered: dict[str, str],
    wanted: list[str],
    unwanted: str,
) -> None:
    labels = {"node.kubernetes.io/instance-type": instance_type}
    prefix = instance_type.lower().replace(".", "-").replace("_", "-")
    [node] = control_plane.create_fake_nodes(
        1, prefix=prefix, labels=labels, capacity=GPUS | offered
    )
    told = said(control_plane, node)
    assert all(words in told for words in wanted), told
    assert unwanted not in told
    assert "one worker: no other node is reached" in said(control_plane, node, "--workers=1")


def test_a_node_that_is_not_there_is_named(control_plane: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere: is no node of the cluster; use a name of"):
        said(control_plane, "nowhere")
    with pytest.raises(ConfigError, match="cannot be used"):
        CliRunner().invoke(
            app,
            ["topology", "needs", "nowhere", f"--kubeconfig={tmp_path / 'absent'}"],
            catch_exceptions=False,
        )
