"""A tuning as documents: JSON for machines, and the patch that makes a job the best point."""

from collections.abc import Sequence
from typing import Any

from kopeck.cost.dollars import unit_dollars
from kopeck.tuning.front import best_of, pareto_front
from kopeck.tuning.outcome import Measured, Outcome
from kopeck.tuning.points import Point


def as_document(job_name: str, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """What is unknown has no key. `best` and `patch` are absent where no point can be used."""
    measured = [each for each in outcomes if isinstance(each, Measured)]
    front, best = pareto_front(measured), best_of(measured)
    points = [_point(each.point) | _facts(each) | {"isOnFront": each in front} for each in outcomes]
    document: dict[str, Any] = {"v": 1, "job": job_name, "points": points}
    return document | ({"best": _point(best.point), "patch": patch_of(best.point)} if best else {})


def patch_of(point: Point) -> dict[str, Any]:
    """A JSON merge patch of a TrainingJob."""
    training = {
        "microBatchSize": point.micro_batch,
        "activations": point.activations.model_dump(by_alias=True),  # null removes a budget
    }
    return {"spec": {"training": training}}


def _point(point: Point) -> dict[str, Any]:
    return {
        "microBatchSize": point.micro_batch,
        "accumulation": point.accumulation,
        "activations": point.activations.model_dump(by_alias=True, exclude_none=True),
    }


def _facts(outcome: Outcome) -> dict[str, Any]:
    if not isinstance(outcome, Measured):
        return {"outcome": outcome.kind, "reason": outcome.reason}
    dollars = outcome.dollars_per_sample
    return {
        "outcome": "measured",
        "stepSeconds": outcome.step_seconds,
        "peakBytes": outcome.peak_bytes,
        "memory": outcome.memory,
    } | ({} if dollars is None else {"dollarsPerSample": unit_dollars(dollars)})
