"""`kopeck trace`: where each nanosecond of each GPU went, from Kineto traces."""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from kopeck.api.errors import ConfigError

if TYPE_CHECKING:
    from kopeck.trace.files import TraceFile
    from kopeck.trace.report import Report

_PICTURES = (".png", ".svg")


class Format(StrEnum):
    """What is printed."""

    TABLE = "table"
    JSON = "json"


def trace(
    paths: Annotated[
        list[Path],
        typer.Argument(help="Traces, .json, .json.gz or .tar.gz, or folders with one per rank."),
    ],
    form: Annotated[
        Format, typer.Option("--format", help="table to read, json to pipe.")
    ] = Format.TABLE,
    picture: Annotated[
        Path | None, typer.Option(help="Draw one step of each rank: FILE.png or FILE.svg.")
    ] = None,
    *,
    hta_compatible: Annotated[
        bool,
        typer.Option("--hta-compatible", help="The numbers of HolisticTraceAnalysis 0.5.0."),
    ] = False,
) -> None:
    """Say where each GPU's time went: computation, exposed communication, waiting, idle.

    Reads what torch.profiler exported, one trace per rank of a job. Collectives are matched across
    ranks, so that waiting for late ranks is told from transfer. What is damaged is read as far as
    it can be, and what was lost is said on standard error.
    """
    _check(picture, hta_compatible=hta_compatible)
    with TemporaryDirectory(prefix="kopeck-trace-") as folder:
        # Heavy libraries are loaded by the command that needs them.
        from kopeck.trace.files import trace_files  # noqa: PLC0415

        files = trace_files(paths, Path(folder))
        if hta_compatible:
            _print_hta(files, form)
            return
        report = _report(files)
    _print(report, form)
    if picture is not None:
        _draw(report, picture)


def _check(picture: Path | None, *, hta_compatible: bool) -> None:
    missing = [name for name in ("numpy", "msgspec") if find_spec(name) is None]
    if picture is not None and find_spec("matplotlib") is None:
        missing.append("matplotlib")
    if missing:
        wrong = f"{' and '.join(missing)} is not installed"
        raise ConfigError("kopeck trace", wrong, "run pip install 'kopeck[trace]'")
    if picture is not None and picture.suffix not in _PICTURES:
        raise ConfigError("--picture", f"{picture} is no .png or .svg", "name one, as step.png")
    if picture is not None and hta_compatible:
        wrong = "--hta-compatible has no picture"
        raise ConfigError("--picture", wrong, "leave one of the two options out")


def _report(files: "list[TraceFile]") -> "Report":
    from kopeck.trace.parallel_reading import read_summaries  # noqa: PLC0415
    from kopeck.trace.report import report_of  # noqa: PLC0415

    with _progress(len(files)) as told:
        ranks = read_summaries(files, told)
    return report_of(ranks.measured, ranks.left_out)


@contextmanager
def _progress(ranks: int) -> Iterator[Callable[[], None]]:
    columns = (TextColumn("Reading ranks"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    silent = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=silent) as progress:
        task = progress.add_task("", total=ranks)
        yield lambda: progress.advance(task)


def _print(report: "Report", form: Format) -> None:
    from kopeck.cli.trace_tables import tables  # noqa: PLC0415
    from kopeck.trace.document import as_document  # noqa: PLC0415

    if form is Format.JSON:
        typer.echo(json.dumps(as_document(report), indent=2))
    else:
        _print_each(tables(report))
    for note in report.notes:
        typer.echo(note, err=True)


def _print_hta(files: "list[TraceFile]", form: Format) -> None:
    from kopeck.cli.trace_tables import hta_tables  # noqa: PLC0415
    from kopeck.trace.document import as_hta_document  # noqa: PLC0415
    from kopeck.trace.parallel_reading import read_hta_figures  # noqa: PLC0415

    with _progress(len(files)) as told:
        ranks = read_hta_figures(files, told)
    names = [file.name for file in ranks.files]
    if form is Format.JSON:
        typer.echo(json.dumps(as_hta_document(names, ranks.measured), indent=2))
    else:
        _print_each(hta_tables(names, ranks.measured))
    for note in ranks.left_out:
        typer.echo(note, err=True)


def _print_each(parts: Iterable[Table | Text]) -> None:
    # What stands in a trace is text, whatever brackets and colons are in it.
    console = Console(highlight=False, markup=False, emoji=False)
    for number, each in enumerate(parts):
        if number and isinstance(each, Table):
            console.print()
        console.print(each)


def _draw(report: "Report", picture: Path) -> None:
    from kopeck.trace.picture import draw, drawn_step  # noqa: PLC0415

    ranks = [rank for rank in report.ranks if rank.summary.breakdown]
    step = drawn_step(ranks)
    if step is None:
        wrong = "the traces have no step with GPU events in common"
        raise ConfigError("--picture", wrong, "name traces of the same steps")
    try:
        draw(ranks, step, picture)
    except OSError as error:
        wrong = f"{picture} cannot be written ({error.strerror})"
        raise ConfigError("--picture", wrong, "name a place that can be written to") from None
    typer.echo(f"Picture: {picture}", err=True)
