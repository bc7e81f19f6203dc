"""`kopeck run`: a TrainingJob's training on this machine."""

import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from kopeck.cli.prices import dollars_per_hour
from kopeck.cost.dollars import readable_dollars
from kopeck.local.job import LocalResult, run_job
from kopeck.local.manifest import read_job
from kopeck.local.port import free_port
from kopeck.local.worker import LocalJob


def run(
    file: Annotated[Path, typer.Option("--file", "-f", help="A TrainingJob, YAML.")],
    price_book: Annotated[
        Path | None, typer.Option(help="Prices, as the operator's; with --instance-type.")
    ] = None,
    instance_type: Annotated[
        str | None, typer.Option(help="What this machine is in the price book.")
    ] = None,
) -> None:
    """Train on this machine, without a cluster, by the same launcher, trainer and exporter.

    All workers run here and share the machine and its price. Dollars are of compute only.
    Checkpoints and logs go to a folder that is named at the start.
    """
    name, spec = read_job(file)
    price = dollars_per_hour(price_book, instance_type)
    folder = Path(tempfile.mkdtemp(prefix=f"kopeck-{name[:20]}-"))
    console = Console(stderr=True, markup=False, emoji=False)
    console.print(f"Logs and checkpoints: {folder}", highlight=False)
    job = LocalJob(
        name=name,
        spec=spec,
        folder=folder,
        modules=file.parent,
        master_port=free_port(),
        hourly_rate=None if price is None else price / spec.workers.replicas,
    )
    planned = spec.training.planned_samples if spec.training else None
    before_steps = "running" if spec.entrypoint is None else "compiling"
    with _progress(console, planned) as progress:
        task = progress.add_task("starting", total=planned)
        result = run_job(
            job,
            lambda: datetime.now(UTC),
            lambda report: progress.update(task, **_told(report, before_steps)),
        )
    Console().print(_table(result))
    if result.exit_code:
        console.print(result.report.get("message") or f"see {folder}", style="red")
        raise typer.Exit(result.exit_code)


def _progress(console: Console, planned_samples: int | None) -> Progress:
    """A loop of the user's own does not say how far it will go."""
    done = "{task.completed:.0f}"
    planned = "" if planned_samples is None else f"/{planned_samples}"
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn(f"{done}{planned} samples"),
        TimeElapsedColumn(),
        console=console,
    )


def _told(report: dict[str, Any], before_steps: str) -> dict[str, Any]:
    """The progress bar's fields."""
    if not report.get("samples"):
        return {"description": before_steps if report else "starting"}
    loss = report.get("loss")
    said = f"step {report['step']}" + ("" if loss is None else f"  loss {loss:.3f}")
    return {"description": said, "completed": report["samples"]}


def _table(result: LocalResult) -> Table:
    report, unit_cost = result.report, result.dollars_per_sample
    table = Table(show_header=False, box=None)
    known = {
        "Samples": report.get("samples"),
        "Seconds": round(result.seconds, 1),
        "Loss": report.get("loss") and round(report["loss"], 4),
        "Compile": _compile(report),
        "Spent": result.spent and readable_dollars(result.spent),
        "$/1K samples": unit_cost and readable_dollars(unit_cost * 1000),
    }
    for label, value in known.items():
        table.add_row(label, "unknown" if value is None else str(value))
    return table


def _compile(report: dict[str, Any]) -> str | None:
    if "compileSeconds" not in report:
        return None
    breaks, again = report.get("graphBreaks", "?"), report.get("recompiles", "?")
    return f"{report['compileSeconds']:.1f} s, {breaks} graph breaks, {again} recompiles"
