"""`kopeck tune`: how to train the same global batch for the fewest dollars."""

import json
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from kopeck.api.errors import ConfigError
from kopeck.api.training import ActivationsSpec
from kopeck.cli.prices import dollars_per_hour
from kopeck.cost.dollars import readable_dollars
from kopeck.local.manifest import read_job
from kopeck.local.tune import Tuning, measure
from kopeck.tuning.document import as_document, patch_of
from kopeck.tuning.front import best_of, pareto_front
from kopeck.tuning.outcome import Measured, Outcome
from kopeck.tuning.picture import draw
from kopeck.tuning.points import Point, points_of
from kopeck.tuning.trial import UNMEASURED_STEPS
from kopeck.tuning.words import MEMORY_LABELS, readable_bytes, readable_seconds


def tune(  # noqa: PLR0913  one of each option
    file: Annotated[Path, typer.Option("--file", "-f", help="A TrainingJob, YAML.")],
    micro_batch: Annotated[
        str | None,
        typer.Option(help="Sizes to try, as 1,2,4. Default: divisors, each twice the one before."),
    ] = None,
    activations: Annotated[
        str | None,
        typer.Option(help="Modes to try, as none,full,budget:0.5. Default: all, budget at half."),
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help="Steps to measure at each point.")] = 5,
    price_book: Annotated[
        Path | None, typer.Option(help="Prices, as the operator's; with --instance-type.")
    ] = None,
    instance_type: Annotated[
        str | None, typer.Option(help="What this machine is in the price book.")
    ] = None,
    output: Annotated[
        Path, typer.Option(help="Folder for NAME-tune.svg and NAME-patch.yaml.")
    ] = Path(),
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Measure which micro-batch and activation mode train for the fewest dollars per sample.

    The global batch stays: a smaller micro-batch is accumulated more often. Each point trains the
    real model on this machine for a few steps, in processes of its own, and saves nothing. Prints
    the Pareto front of step time, peak memory and dollars per sample; draws it as NAME-tune.svg;
    writes the best point as NAME-patch.yaml, for
    kubectl patch tj NAME --type merge --patch-file NAME-patch.yaml.
    """
    if not output.is_dir():
        raise ConfigError("--output", f"{output} is no folder", "name one that exists")
    name, spec = read_job(file)
    tuning = Tuning(
        name=name,
        spec=spec,
        points=points_of(spec, _sizes(micro_batch), _modes(activations)),
        measured_steps=steps,
        folder=Path(tempfile.mkdtemp(prefix=f"kopeck-{name[:20]}-")),
        modules=file.parent,
        dollars_per_hour=dollars_per_hour(price_book, instance_type),
    )
    console = Console(stderr=True, markup=False, emoji=False)
    console.print(f"Logs: {tuning.folder}", highlight=False)
    outcomes = _measure(tuning, console)
    if as_json:
        typer.echo(json.dumps(as_document(name, outcomes)))
    else:
        Console().print(_table(outcomes))
    _write(output, name, outcomes, console)


def _sizes(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(size) for size in text.split(",")]
    except ValueError:
        wrong = f"{text!r} is no list of whole numbers"
        raise ConfigError("--micro-batch", wrong, "write one such as 1,2,4") from None


def _modes(text: str | None) -> list[ActivationsSpec] | None:
    if text is None:
        return None
    try:
        return [_mode(*each.split(":")) for each in text.split(",")]
    except (TypeError, ValueError):
        wrong = f"{text!r} is no list of modes"
        instead = "use some of none, selective, full, budget:0.5 (of 0 to 1)"
        raise ConfigError("--activations", wrong, instead) from None


def _mode(mode: str, budget: str | None = None) -> ActivationsSpec:
    """Raises ValueError for what is none."""
    if (mode == "budget") != (budget is not None):
        raise ValueError
    return ActivationsSpec.model_validate({"mode": mode, "memoryBudget": budget})


def _measure(tuning: Tuning, console: Console) -> list[Outcome]:
    steps = UNMEASURED_STEPS + tuning.measured_steps
    outcomes: list[Outcome] = []
    with _progress(console) as progress:
        task = progress.add_task("starting", total=len(tuning.points) * steps)

        def tell(point: Point, report: dict[str, Any]) -> None:
            _show(progress, task, point, report, steps * len(outcomes))

        for outcome in measure(tuning, lambda: datetime.now(UTC), tell):
            outcomes.append(outcome)
            progress.update(task, completed=steps * len(outcomes))
            console.print(f"{outcome.point}: {_sentence(outcome)}", highlight=False)
    return outcomes


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), console=console
    )


def _show(
    progress: Progress, task: TaskID, point: Point, report: dict[str, Any], steps_before: int
) -> None:
    step = report.get("step") or 0
    doing = f"step {step}" if step else "compiling" if report else "starting"
    progress.update(task, description=f"{point}: {doing}", completed=steps_before + step)


def _sentence(outcome: Outcome) -> str:
    if not isinstance(outcome, Measured):
        return outcome.reason
    return f"{readable_seconds(outcome.step_seconds)} a step, {readable_bytes(outcome.peak_bytes)}"


def _table(outcomes: list[Outcome]) -> Table:
    measured = [each for each in outcomes if isinstance(each, Measured)]
    front, best = pareto_front(measured), best_of(measured)
    table = Table(box=None)
    table.add_column("Micro-\nbatch", justify="right")
    table.add_column("Accumu-\nlation", justify="right")
    table.add_column("Activa-\ntions")
    memory = MEMORY_LABELS[best.memory] if best else "Peak memory"
    for label in ("Step\ntime", memory.replace(" memory", "\nmemory"), "$/1K\nsamples"):
        table.add_column(label, justify="right", no_wrap=True)
    table.add_column("")
    for each in outcomes:
        mark = "best" if each is best else "front" if each in front else ""
        point = (str(each.point.micro_batch), str(each.point.accumulation))
        cells = (*point, each.point.activations_name, *_figures(each, mark))
        table.add_row(*cells, style="bold" if each is best else None)
    return table


def _figures(outcome: Outcome, mark: str) -> tuple[str, str, str, str]:
    if not isinstance(outcome, Measured):
        return "", "", "", outcome.kind.replace("-", " ")
    dollars = outcome.dollars_per_sample
    return (
        readable_seconds(outcome.step_seconds),
        readable_bytes(outcome.peak_bytes),
        "unknown" if dollars is None else readable_dollars(dollars * 1000),
        mark,
    )


def _write(folder: Path, name: str, outcomes: list[Outcome], console: Console) -> None:
    """The picture and the patch. Exits with 1 where no point can be used."""
    picture, patch = folder / f"{name}-tune.svg", folder / f"{name}-patch.yaml"
    best = best_of([each for each in outcomes if isinstance(each, Measured)])
    if best is None:
        console.print("no point can be used", style="red")
        raise typer.Exit(1)
    picture.write_text(draw(f"{name}: micro-batch × accumulation", outcomes))
    patch.write_text(yaml.safe_dump(patch_of(best.point)))
    console.print(f"Picture: {picture}", highlight=False)
    command = f"kubectl patch tj {name} --type merge --patch-file {patch}"
    console.print(f"Best point: {command}", highlight=False, soft_wrap=True)
