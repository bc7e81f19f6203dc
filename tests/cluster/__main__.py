"""Bring a cluster up on this machine, look at it, take it down."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from tests.cluster.cluster import LocalCluster
from tests.cluster.errors import ClusterError
from tests.cluster.processes import ENTRY_SUFFIX, recorded
from tests.cluster.record import remove

app = typer.Typer(no_args_is_help=True, add_completion=False, help=__doc__)
State = Annotated[Path, typer.Option(help="The cluster's folder: kubeconfig, logs, all its files")]
DEFAULT_STATE = Path(".cluster")


@app.command()
def up(
    state: State = DEFAULT_STATE,
    nodes: Annotated[int, typer.Option(min=0, max=9, help="Real nodes; 0 needs no root")] = 2,
    *,
    kwok: Annotated[bool, typer.Option("--kwok", help="Be ready for fake nodes")] = False,
) -> None:
    """Start a cluster and print the command that points kubectl at it."""
    cluster = LocalCluster.start(state, nodes=nodes, kwok=kwok)
    typer.echo(f"export KUBECONFIG={cluster.kubeconfig}")


@app.command()
def down(state: State = DEFAULT_STATE) -> None:
    """End a cluster, also one whose start was interrupted; where there is none, do nothing."""
    remove(state.resolve())


@app.command()
def status(state: State = DEFAULT_STATE) -> None:
    """Show nodes and processes; the exit code is 1 where something has ended."""
    cluster = LocalCluster.load(state)
    processes = [it for it in recorded(cluster.state) if not it.name.endswith(ENTRY_SUFFIX)]
    typer.echo(f"API server  {cluster.api_url}")
    for node, is_ready in cluster.endpoint.nodes().items():
        typer.echo(f"node        {node}: {'ready' if is_ready else 'not ready'}")
    for process in processes:
        state_word = f"process {process.pid}" if process.is_alive() else f"ended, see {process.log}"
        typer.echo(f"            {process.name}: {state_word}")
    raise typer.Exit(0 if all(process.is_alive() for process in processes) else 1)


if __name__ == "__main__":
    try:
        app()
    except ClusterError as error:
        sys.exit(f"error: {error}")
