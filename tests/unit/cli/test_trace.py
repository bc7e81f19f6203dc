"""`kopeck trace`: data on standard output, what was lost on standard error."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from kopeck.api.errors import ConfigError
from kopeck.cli import app
from tests.unit.trace.traces import (
    FOLDER,
    a_call,
    a_kernel,
    a_step,
    a_trace,
    all_reduce,
    an_operator,
    needs_shared_traces,
    written,
)


def _trace(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["trace", *map(str, arguments)], env={"COLUMNS": "80"})


def _job(folder: Path) -> Path:
    """Two ranks, of which the second comes 30 µs late."""
    for rank, (start, length) in enumerate(((10, 50), (40, 20))):
        events = [
            a_step(7, 0, 200),
            a_call(0, 1, 1),
            a_kernel(11, 20, correlation=1),
            a_call(2, 1, 2),
            all_reduce(start, length, correlation=2),
            an_operator(80, 30, "aten::item"),
            a_call(85, 20, 3, "cudaStreamSynchronize"),
        ]
        written(folder, a_trace(*events, rank=rank, world_size=2), f"rank{rank}.json")
    return folder


def test_the_tables_fit_and_name_who_is_late(tmp_path: Path) -> None:
    result = _trace(_job(tmp_path))
    assert (result.exit_code, result.stderr) == (0, "")
    assert "Rank 1 is late: each other rank waited 30.00 µs for it." in result.stdout
    assert "aten::item" in result.stdout
    assert "…" not in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_json_has_seconds_and_ratios(tmp_path: Path) -> None:
    result = _trace(_job(tmp_path), "--format", "json")
    document = json.loads(result.stdout)
    first, second = document["ranks"]
    assert first["time"]["exposed_communication_seconds"] == pytest.approx(30e-6)
    assert first["time"]["overlap_ratio"] == pytest.approx(0.4)
    assert first["communication"]["wait_seconds"] == pytest.approx(30e-6)
    assert second["communication"]["held_up_seconds"] == pytest.approx(30e-6)
    assert document["stragglers"] == [1]
    assert document["collectives"][0]["bus_bytes_per_second"] == pytest.approx(4e6 / 20e-6)
    assert document["notes"] == []


def test_no_communication_has_no_overlap(tmp_path: Path) -> None:
    file = written(tmp_path, a_trace(a_kernel(0, 10)))
    (rank,) = json.loads(_trace(file, "--format", "json").stdout)["ranks"]
    assert rank["time"]["overlap_ratio"] is None
    assert rank["communication"] is None


def test_what_was_lost_is_told_on_standard_error(tmp_path: Path) -> None:
    text = a_trace(*(a_kernel(number * 20, 10) for number in range(5)))
    file = written(tmp_path, text[: text.rindex("gemm")])
    result = _trace(file)
    assert result.exit_code == 0
    assert "cut short" in result.stderr
    assert "cut short" not in result.stdout
    asked = _trace(file, "--format", "json")
    assert "cut short" in asked.stderr
    assert "cut short" in " ".join(json.loads(asked.stdout)["notes"])


@pytest.mark.parametrize("name", ["[/x]", "[bold]f[/bold]", "[red]", ":boom:"])
def test_names_are_printed_as_they_are(name: str, tmp_path: Path) -> None:
    events = [
        an_operator(0, 30, name),
        an_operator(1, 28, "aten::item"),
        a_call(2, 20, 1, "cudaStreamSynchronize"),
        a_kernel(10, 5),
    ]
    file = written(tmp_path, a_trace(*events), f"{name.replace('/', '')}.json")
    assert f"{name} > aten::item" in _trace(file).stdout
    assert name.replace("/", "") in _trace(file, "--hta-compatible").stdout


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_a_picture_is_of_one_step_of_each_rank(suffix: str, tmp_path: Path) -> None:
    picture = tmp_path / f"step{suffix}"
    result = _trace(_job(tmp_path), "--picture", picture)
    assert result.exit_code == 0
    assert str(picture) in result.stderr
    content = picture.read_bytes()
    if suffix == ".png":
        assert content.startswith(b"\x89PNG")
    else:
        assert content.count(b"fill: #d62728") >= 3  # Two ranks and the legend


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["none.json"], "none.json: does not exist"),
        (["trace.json", "--picture", "step.pdf"], "--picture: step.pdf is no .png or .svg"),
        (["x", "--picture", "a.png", "--hta-compatible"], "--hta-compatible has no picture"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(arguments: list[str], said: str) -> None:
    result = _trace(*arguments)
    assert isinstance(result.exception, ConfigError)
    assert said in str(result.exception)


def test_a_picture_of_a_cpu_alone_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path, a_trace(a_call(0, 5, 1)))
    result = _trace(file, "--picture", tmp_path / "step.png")
    assert isinstance(result.exception, ConfigError)
    assert "no step with GPU events" in str(result.exception)


@needs_shared_traces
def test_the_compatible_mode_prints_htas_numbers() -> None:
    result = _trace(FOLDER / "hta_nccl_a100.json.gz", "--hta-compatible", "--format", "json")
    (rank,) = json.loads(result.stdout)["ranks"]
    assert rank["comp_comm_overlap_pctg"] == 14.31
    assert rank["idle_by_stream_us"]["7"] == {"host_wait": 357247, "kernel_wait": 2155, "other": 0}
    table = _trace(FOLDER / "hta_nccl_a100.json.gz", "--hta-compatible").stdout
    assert "14.31" in table
    assert "…" not in table
