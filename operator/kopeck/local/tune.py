"""Measuring the points of a tuning, each by a short training in processes of its own."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from kopeck.api.errors import KopeckError
from kopeck.api.trainingjob import TrainingJobSpec
from kopeck.local.job import run_job
from kopeck.local.port import free_port
from kopeck.local.worker import LocalJob
from kopeck.tuning.outcome import Outcome, failure, skipped_after, success
from kopeck.tuning.points import Point, tunable_training
from kopeck.tuning.trial import trial_of

_CONFIGURATION_EXIT_CODE = 78


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """What is measured, and where."""

    name: str
    spec: TrainingJobSpec
    points: Sequence[Point]
    """Those of one activation mode from the smallest micro-batch to the largest."""
    measured_steps: int
    folder: Path
    """Of the logs; it exists."""
    modules: Path
    """Where the entrypoint's module may lie."""
    dollars_per_hour: Decimal | None
    """Of this machine, which all workers share; None while unknown."""


def measure(
    tuning: Tuning,
    clock: Callable[[], datetime],
    tell: Callable[[Point, dict[str, Any]], None],
) -> Iterator[Outcome]:
    """The outcome of each point, in order; `tell` is called with worker 0's progress meanwhile.

    Raises KopeckError where the first point's configuration is refused: so would all be.
    """
    outcomes: list[Outcome] = []
    for number, point in enumerate(tuning.points):
        outcome = skipped_after(point, outcomes) or _train(tuning, number, point, clock, tell)
        outcomes.append(outcome)
        yield outcome


def _train(
    tuning: Tuning,
    number: int,
    point: Point,
    clock: Callable[[], datetime],
    tell: Callable[[Point, dict[str, Any]], None],
) -> Outcome:
    folder = tuning.folder / f"point-{number}"
    folder.mkdir()
    job = LocalJob(
        name=tuning.name,
        spec=trial_of(tuning.spec, point, tuning.measured_steps),
        folder=folder,
        modules=tuning.modules,
        master_port=free_port(),
        hourly_rate=None,
    )
    result = run_job(job, clock, lambda report: tell(point, report))
    if result.exit_code == _CONFIGURATION_EXIT_CODE and number == 0:
        raise KopeckError(result.report["message"])
    if result.exit_code:
        return failure(point, result.exit_code, result.report)
    return success(
        point,
        result.reports,
        global_batch=tunable_training(tuning.spec).global_batch_size,
        dollars_per_hour=tuning.dollars_per_hour,
    )
