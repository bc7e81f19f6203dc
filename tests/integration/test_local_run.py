"""`kopeck run`: the same manifest on this machine, by the same launcher, trainer and exporter."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.builders import a_job

EXAMPLES = Path("examples").resolve()


def a_tiny_training(**spec: Any) -> dict[str, Any]:
    training = {
        "steps": 4,
        "globalBatchSize": 8,
        "microBatchSize": 2,
        "compile": {"mode": "off"},
        "precision": "fp32",
        "checkpoint": {"path": "/checkpoints", "everySteps": 2},
    }
    parameters = {"dim": 16, "layers": 1, "heads": 1, "sequenceLength": 16}
    return a_job("tiny", **{"training": training, "parameters": parameters} | spec)


def run(folder: Path, job: Any, *arguments: str) -> subprocess.CompletedProcess[str]:
    manifest = folder / "job.yaml"
    manifest.write_text(job if isinstance(job, str) else yaml.safe_dump(job))
    (folder / "byte_llama.py").symlink_to(EXAMPLES / "byte_llama.py")
    return subprocess.run(
        [sys.executable, "-m", "kopeck", "run", "-f", str(manifest), *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_a_job_trains_and_its_dollars_are_told(tmp_path: Path) -> None:
    prices = ["--price-book", "examples/prices.yaml", "--instance-type", "kopeck.local"]
    ended = run(tmp_path, a_tiny_training(), *prices)
    assert ended.returncode == 0, ended.stderr
    told = dict(line.strip().split("  ", 1) for line in ended.stdout.splitlines() if line.strip())
    told = {label.strip(): value.strip() for label, value in told.items()}
    assert told["Samples"] == "32"
    dollars = {label: float(told[label].strip("$")) for label in ("Spent", "$/1K samples")}
    assert dollars["$/1K samples"] == pytest.approx(dollars["Spent"] / 32 * 1000, rel=0.01)
    assert dollars["Spent"] == pytest.approx(float(told["Seconds"]) * 3.60 / 3600, rel=0.02)


def test_without_a_price_dollars_are_unknown_and_never_zero(tmp_path: Path) -> None:
    ended = run(tmp_path, a_tiny_training())
    assert ended.returncode == 0, ended.stderr
    lines = [line.split() for line in ended.stdout.splitlines()]
    assert ["Spent", "unknown"] in lines
    assert ["$/1K", "samples", "unknown"] in lines


def test_a_loop_of_the_users_own_runs_and_its_samples_are_told(tmp_path: Path) -> None:
    reporting = "from kopeck_trainer import report; report.step(samples=8, loss=1.5)"
    job = a_job("own", entrypoint=None, training=None, workers={"replicas": 1})
    job["spec"]["command"] = [sys.executable, "-c", reporting]
    ended = run(tmp_path, job)
    assert ended.returncode == 0, ended.stderr
    lines = [line.split() for line in ended.stdout.splitlines()]
    assert ["Samples", "8"] in lines
    assert re.search(r" \d samples ", ended.stderr)


def test_brackets_in_what_a_worker_says_are_text(tmp_path: Path) -> None:
    """As of paths and shapes: they are no markup, closed or not."""
    job = a_job("own", entrypoint=None, training=None, workers={"replicas": 1})
    job["spec"]["command"] = ["/[red]/of [0], see [/tmp]"]
    ended = run(tmp_path, job)
    assert ended.returncode == 78
    assert "/[red]/of [0], see [/tmp] cannot be started" in " ".join(ended.stderr.split())


def test_a_builder_that_does_not_import_is_named_and_no_process_stays(tmp_path: Path) -> None:
    ended = run(tmp_path, a_tiny_training(entrypoint="no_such_module:build"))
    assert ended.returncode == 78
    assert "spec.entrypoint" in ended.stderr
    assert "no_such_module" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("[", "cannot be read"),
        ("kind: Pod", "holds no TrainingJob of kopeck.dev/v1alpha1; name a file with exactly one"),
        (
            {"apiVersion": "kopeck.dev/v1alpha1", "kind": "TrainingJob", "spec": {}},
            "metadata.name is missing; give the job a name",
        ),
        (a_tiny_training(image=None), "spec.image: field required"),
        (a_tiny_training(wrokers={}), "spec.wrokers: extra inputs are not permitted"),
    ],
)
def test_a_bad_file_is_refused_with_one_sentence(
    tmp_path: Path, content: Any, sentence: str
) -> None:
    ended = run(tmp_path, content)
    assert ended.returncode == 2
    assert sentence in ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--price-book", "examples/prices.yaml"], "add --instance-type"),
        (["--instance-type", "kopeck.local"], "add --price-book"),
        (
            ["--price-book", "examples/prices.yaml", "--instance-type", "none.such"],
            "has no price for none.such",
        ),
        (
            ["--price-book", "none.yaml", "--instance-type", "kopeck.local"],
            "none.yaml: cannot be read (No such file or directory)",
        ),
    ],
)
def test_a_price_that_cannot_be_found_is_refused(
    tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    ended = run(tmp_path, a_tiny_training(), *arguments)
    assert ended.returncode == 2
    assert sentence in ended.stderr
