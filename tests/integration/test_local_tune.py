"""`kopeck tune`: real trainings of a few steps each, and what is told of them."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml

from tests.builders import a_job

MODULES = [Path("examples/byte_llama.py"), Path("tests/integration/short_of_memory.py")]
SIZES = {"dim": 16, "layers": 1, "heads": 1, "sequenceLength": 16}
PRICES = ["--price-book", "examples/prices.yaml", "--instance-type", "kopeck.local"]


def a_tiny_training(folder: Path, **spec: Any) -> dict[str, Any]:
    training = {
        "steps": 1000,
        "globalBatchSize": 16,
        "microBatchSize": 2,
        "compile": {"mode": "off"},
        "precision": "fp32",
        "checkpoint": {"path": str(folder / "checkpoints"), "everySteps": 1},
    }
    basis = {"training": training, "parameters": SIZES, "workers": {"replicas": 1}}
    return a_job("tiny", **basis | spec)


def tune(folder: Path, job: Any, *arguments: str) -> subprocess.CompletedProcess[str]:
    manifest = folder / "job.yaml"
    manifest.write_text(yaml.safe_dump(job))
    for module in MODULES:
        (folder / module.name).symlink_to(module.resolve())
    return subprocess.run(
        [sys.executable, "-m", "kopeck", "tune", "-f", manifest, "--output", folder, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_cheapest_micro_batch_is_found_told_drawn_and_written_as_a_patch(
    tmp_path: Path,
) -> None:
    points = ["--micro-batch", "2,16", "--activations", "none"]
    ended = tune(tmp_path, a_tiny_training(tmp_path), *points, "--json", *PRICES)
    assert ended.returncode == 0, ended.stderr
    told = json.loads(ended.stdout)
    assert [(each["microBatchSize"], each["accumulation"]) for each in told["points"]] == [
        (2, 8),
        (16, 1),
    ]
    for each in told["points"]:
        assert each["memory"] == "resident"
        assert each["peakBytes"] > 10**8  # torch alone is larger
        dollars = 3.60 / 3600 * each["stepSeconds"] / 16
        assert float(each["dollarsPerSample"]) == pytest.approx(dollars, rel=1e-6)
    cheapest = min(told["points"], key=lambda each: float(each["dollarsPerSample"]))
    assert told["best"]["microBatchSize"] == cheapest["microBatchSize"]
    assert cheapest["isOnFront"]
    assert yaml.safe_load((tmp_path / "tiny-patch.yaml").read_text()) == told["patch"]
    assert ET.parse(tmp_path / "tiny-tune.svg").getroot().tag.endswith("svg")  # noqa: S314
    assert f"--patch-file {tmp_path}/tiny-patch.yaml" in ended.stderr
    assert not (tmp_path / "checkpoints").exists()


def rows(ended: subprocess.CompletedProcess[str]) -> list[str]:
    """Of the table, without its header."""
    return [" ".join(line.split()) for line in ended.stdout.splitlines()][2:]


def test_a_point_that_runs_out_of_memory_is_infeasible_and_another_is_the_best(
    tmp_path: Path,
) -> None:
    job = a_tiny_training(
        tmp_path,
        entrypoint="short_of_memory:build",
        parameters=SIZES | {"diesFrom": 16, "by": "MemoryError"},
    )
    ended = tune(tmp_path, job, "--micro-batch", "8,16", "--activations", "full", "--steps", "2")
    assert ended.returncode == 0, ended.stderr
    fits, dies = rows(ended)
    assert fits.startswith("8 2 full ")
    assert fits.endswith(" unknown best")  # without a price
    assert dies == "16 1 full out of memory"
    patch = yaml.safe_load((tmp_path / "tiny-patch.yaml").read_text())
    activations = {"mode": "full", "memoryBudget": None}
    assert patch == {"spec": {"training": {"microBatchSize": 8, "activations": activations}}}


def test_a_killed_rank_of_any_worker_is_taken_for_too_little_memory_and_larger_ones_are_skipped(
    tmp_path: Path,
) -> None:
    job = a_tiny_training(
        tmp_path,
        entrypoint="short_of_memory:build",
        parameters=SIZES | {"diesFrom": 1, "by": "SIGKILL"},
        workers={"replicas": 2},
    )
    ended = tune(tmp_path, job, "--micro-batch", "4,8", "--activations", "none")
    assert ended.returncode == 1
    assert rows(ended) == [
        "4 2 none out of memory",
        "8 1 none skipped",
    ]
    assert "micro-batch 4 × 2, none: killed, as Linux does where memory is short" in ended.stderr
    assert "micro-batch 8 × 1, none: skipped: 4 ran out of memory" in ended.stderr
    assert not (tmp_path / "tiny-patch.yaml").exists()


@pytest.mark.parametrize(
    ("spec", "arguments", "sentence"),
    [
        ({"entrypoint": "no_such_module:build"}, [], "spec.entrypoint: importing no_such_module"),
        ({"entrypoint": None, "command": ["train"]}, [], "spec.entrypoint: is missing"),
        ({"training": None}, [], "spec.training: is missing"),
        ({}, ["--micro-batch", "2,3"], "--micro-batch: 3 does not divide the 16 samples"),
        ({}, ["--micro-batch", "2;4"], "--micro-batch: '2;4' is no list of whole numbers"),
        ({}, ["--activations", "none,budget:2"], "--activations: 'none,budget:2' is no list of"),
        ({}, ["--activations", "budget"], "--activations: 'budget' is no list of modes"),
        ({}, ["--activations", "full:0.5"], "--activations: 'full:0.5' is no list of modes"),
        ({}, PRICES[:2], "--price-book: does not say what this machine is"),
        ({}, ["--output", "/none/such"], "--output: /none/such is no folder"),
    ],
)
def test_what_cannot_be_tuned_is_refused_with_one_sentence(
    tmp_path: Path, spec: dict[str, Any], arguments: list[str], sentence: str
) -> None:
    ended = tune(tmp_path, a_tiny_training(tmp_path, **spec), *arguments)
    assert ended.returncode == 2
    last_line = ended.stderr.splitlines()[-1]
    assert last_line.startswith(f"kopeck: {sentence}")
    assert "Traceback" not in ended.stderr
    assert ended.stdout == ""
