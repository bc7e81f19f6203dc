"""`kopeck`, also installed as `kubectl-kopeck`: one file per command.

A command parses, calls one function and renders. Data goes to standard output, all else to
standard error.
"""

import sys

import typer

from kopeck.api.errors import KopeckError
from kopeck.cli.operator import operator
from kopeck.cli.run import run
from kopeck.cli.topology import topology
from kopeck.cli.trace import trace
from kopeck.cli.tune import tune

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    help="GPU training on Kubernetes, measured in dollars per sample.",
)
app.command()(operator)
app.command()(run)
app.command()(trace)
app.command()(tune)
app.add_typer(topology, name="topology")


def main() -> None:
    """Run the command line; what its user can mend is one sentence, exit code 2."""
    try:
        app()
    except KopeckError as error:
        print(f"kopeck: {error}", file=sys.stderr)  # noqa: T201  the one place
        raise SystemExit(2) from None
