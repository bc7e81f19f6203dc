"""Trainings of which every step is known: its loss, its gradient's norm and its samples."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.unit.trainer.local_workers import LocalJob


@dataclass(frozen=True, kw_only=True)
class RecordedStep:
    """The same on all ranks but for the samples, which are those of all ranks, sorted."""

    step: int
    loss: float
    gradient_norm: float
    samples: list[int]


def run_recorded(
    job: LocalJob, *, workers: int, attempt: int, **training: Any
) -> list[RecordedStep]:
    """The steps of a whole attempt of `builders/recorded.py`."""
    folder = job.folder / f"records-{attempt}"
    folder.mkdir()
    config = job.config(entrypoint="recorded:build", **training)
    config["parameters"] = {"records": str(folder)}
    codes = job.run(config, workers=workers, attempt=attempt)
    assert codes == [0] * workers, job.workers[0].output
    by_rank = [_lines(folder / f"rank-{rank}") for rank in range(workers)]
    return [_merged(lines) for lines in zip(*by_rank, strict=True)]


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def _merged(lines: tuple[dict[str, Any], ...]) -> RecordedStep:
    [(step, loss, norm)] = {(line["step"], line["loss"], line["gradientNorm"]) for line in lines}
    samples = sorted(sample for line in lines for sample in line["samples"])
    return RecordedStep(step=step, loss=loss, gradient_norm=norm, samples=samples)
