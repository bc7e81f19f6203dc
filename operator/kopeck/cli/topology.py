"""`kopeck topology`: the files that tell NCCL how a machine is wired."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from kopeck.api.errors import ConfigError
from kopeck.cli.topology_needs import needs
from kopeck.local.sysfs import read_machine
from kopeck.topology.check import check as findings_of
from kopeck.topology.check import violations
from kopeck.topology.document import as_document
from kopeck.topology.dot import to_dot
from kopeck.topology.instance_type import InstanceType
from kopeck.topology.library import known_instance_type
from kopeck.topology.machine import Device, Machine, Part, Switch
from kopeck.topology.writer import to_xml

topology = typer.Typer(
    no_args_is_help=True, help="What tells NCCL how GPUs and NICs are connected."
)
topology.command()(needs)


class Format(StrEnum):
    """What `show` prints."""

    TREE = "tree"
    DOT = "dot"
    XML = "xml"
    JSON = "json"


@topology.command()
def check(
    file: Annotated[Path, typer.Argument(help="A topology file, as of NCCL_TOPO_FILE.")],
) -> None:
    """Say where NCCL would stop at a topology file, or leave out what it says.

    Prints one line for each place. Exit code 1 if there is one that is fatal or ignored; advice
    alone leaves it 0.
    """
    findings = findings_of(_content(file))
    for each in findings:
        typer.echo(f"{file}:{each.line}: {each.rule.kind}: {each.wrong}; {each.instead}")
    wrong = len(violations(findings))
    typer.echo(f"{wrong or 'no'} {'violation' if wrong == 1 else 'violations'}", err=True)
    if wrong:
        raise typer.Exit(1)


@topology.command()
def show(
    instance_type: Annotated[str, typer.Argument(help="As node labels have it: p5.48xlarge.")],
    form: Annotated[
        Format, typer.Option("--format", help="tree to read, xml for NCCL, dot to draw, json.")
    ] = Format.TREE,
) -> None:
    """Print what is known of an instance type, and whether its pods need a topology file."""
    known = known_instance_type(instance_type)
    match form:
        case Format.TREE:
            _print_tree(known)
        case Format.DOT:
            typer.echo(to_dot(known.names[0], _machine(known)), nl=False)
        case Format.XML:
            typer.echo(to_xml(_machine(known)), nl=False)
        case Format.JSON:
            typer.echo(json.dumps(as_document(known), indent=2))


@topology.command()
def capture(
    root: Annotated[
        Path, typer.Option(help="Where /sys and /proc of the machine are, if not at the top.")
    ] = Path("/"),
) -> None:
    """Print a topology file of this machine: its GPUs, RDMA NICs and PCIe switches, by /sys.

    For pods that cannot see /sys. Where they can, NCCL finds the same by itself.
    """
    machine = read_machine(root)
    content = to_xml(machine)
    typer.echo(content, nl=False)
    if not any(isinstance(part, Switch) for node in machine.numa_nodes for part in node.below):
        typer.echo("no switch is visible: NCCL finds as much by itself without the file", err=True)
    for each in violations(findings_of(content.encode())):
        typer.echo(f"line {each.line}: {each.rule.kind}: {each.wrong}", err=True)


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        wrong = f"cannot be read ({error.strerror})"
        raise ConfigError(str(file), wrong, "name a readable topology file") from None


def _machine(known: InstanceType) -> Machine:
    if known.machine is None:
        unknown = ", ".join(known.unknown)
        wrong = f"its {unknown} are not publicly known"
        raise ConfigError(known.names[0], wrong, "see --format tree for what is")
    return known.machine


def _print_tree(known: InstanceType) -> None:
    console = Console(highlight=False)
    console.print(_tree(known))
    for source in known.sources:
        console.print(Text(f"source: {source}", style="dim"), soft_wrap=True)


def _tree(known: InstanceType) -> Tree:
    tree = Tree(Text(f"{', '.join(known.names)} ({known.cloud})", style="bold"))
    tree.add(Text(f"{known.gpus} × {known.gpu}"))
    if known.nics is not None:
        tree.add(Text(f"{known.nics} × {known.nic}"))
    for node in known.machine.numa_nodes if known.machine else ():
        numa = tree.add(Text(f"NUMA {node.numa_id}"))
        for part in node.below:
            _add(numa, part)
    if known.unknown:
        tree.add(Text(f"not known: {', '.join(known.unknown)}"))
    tree.add(Text(f"topology file: {known.verdict}, since {known.why}"))
    return tree


def _add(tree: Tree, part: Part) -> None:
    if isinstance(part, Device):
        tree.add(Text(f"{part.kind.upper()} {part.bus_id}  {part.link}"))
        return
    kind = "virtual switch" if part.is_virtual else "switch"
    branch = tree.add(Text(f"{kind} {part.bus_id}  {part.link}"))
    for below in part.below:
        _add(branch, below)
