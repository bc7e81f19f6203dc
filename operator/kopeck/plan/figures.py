"""Figures of training and money in status; unknown is absent, never zero."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from kopeck.api.status import (
    CostStatus,
    Display,
    DollarsPerSample,
    TrainingJobStatus,
    TrainingStatus,
)
from kopeck.api.timestamps import format_timestamp, parse_timestamp
from kopeck.api.trainingjob import TrainingJobSpec
from kopeck.cost.dollars import exact_dollars, readable_dollars, unit_dollars
from kopeck.cost.ledger import Ledger
from kopeck.cost.unit_cost import all_in, marginal
from kopeck.plan.pod_facts import PodFacts
from kopeck.plan.reports import trusted

LONGEST_SILENCE = timedelta(minutes=3)
"""Of worker 0, for three looks at the default refresh, before its speed is not that of now."""


def training_while_running(
    before: TrainingStatus | None, report: Mapping[str, Any], workers: int
) -> TrainingStatus | None:
    """Figures of a running attempt by worker 0's /progress; all workers take equal parts.

    What is not told this time stays as it was, but for speeds: the exporter leaves them out when
    training stands still, and what a sample costs now is reckoned from them.
    """
    report = trusted(report)
    if report.get("step") is None:
        return before
    speed, reported_at = report.get("samplesPerSecond"), report.get("reportedAt")
    figures = _reported(report) | {
        "samples_per_second": None if speed is None else speed * workers,
        "reported_at": None if reported_at is None else _from_unix_seconds(reported_at),
    }
    unknown = {name: None for name in ("samples_per_second", "mfu") if figures[name] is None}
    return _with_known(before, figures).model_copy(update=unknown)


def training_unheard_of(before: TrainingStatus | None, now: datetime) -> TrainingStatus | None:
    """Figures of a running attempt whose worker 0 is silent: its speeds are unknown in the end."""
    if before is None or before.reported_at is None:
        return before
    if now - parse_timestamp(before.reported_at) <= LONGEST_SILENCE:
        return before
    return before.model_copy(update={"samples_per_second": None, "mfu": None})


def training_at_end(
    before: TrainingStatus | None, pods: Sequence[PodFacts], now: datetime
) -> TrainingStatus | None:
    """Figures of an attempt whose pods completed, from their termination messages."""
    reports = [pod.final_report for pod in pods if pod.final_report.get("samples") is not None]
    if not reports:
        return before
    furthest = max(reports, key=lambda report: int(report["samples"]))
    speeds = [report.get("samplesPerSecond") for report in reports]
    known = [speed for speed in speeds if speed is not None]
    figures = _reported(furthest) | {
        "compile_seconds": _largest(reports, "compileSeconds"),
        "graph_breaks": _total(reports, "graphBreaks"),
        "recompiles": _total(reports, "recompiles"),
        "eager_fallbacks": _total(reports, "eagerFallbacks"),
        "samples_per_second": sum(known) if len(known) == len(pods) else None,
        "reported_at": format_timestamp(now),
    }
    return _with_known(before, figures)


def training_after_loss(
    before: TrainingStatus | None, pods: Sequence[PodFacts], samples_per_step: int | None
) -> TrainingStatus | None:
    """Figures between attempts: what the last checkpoint keeps; the rest is lost work."""
    reported = [pod.final_report.get("checkpointStep") for pod in pods]
    known_before = before.checkpoint_step if before else None
    kept_step = max((step for step in (*reported, known_before) if step is not None), default=None)
    batch = samples_per_step
    if before and before.step and before.samples is not None:
        batch = before.samples // before.step  # the user may have changed it since
    kept_samples = None if kept_step is None or batch is None else kept_step * batch
    return TrainingStatus(
        step=kept_step,
        samples=kept_samples,
        checkpoint_step=kept_step,
    )


def _reported(report: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "step": report.get("step"),
        "samples": report.get("samples"),
        "loss": report.get("loss"),
        "checkpoint_step": report.get("checkpointStep"),
        "mfu": report.get("mfu"),
        "compile_mode": report.get("compileMode"),
        "compile_decision": report.get("compileDecision"),
        "compile_seconds": report.get("compileSeconds"),
        "graph_breaks": report.get("graphBreaks"),
        "recompiles": report.get("recompiles"),
        "eager_fallbacks": report.get("eagerFallbacks"),
        "nonfinite_losses": report.get("nonfiniteLosses"),
        "loss_spikes": report.get("lossSpikes"),
    }


def _with_known(before: TrainingStatus | None, figures: dict[str, Any]) -> TrainingStatus:
    """What was known before, with what is known now; nobody reads more than four decimals."""
    known = {
        name: round(value, 4) if isinstance(value, float) else value
        for name, value in figures.items()
        if value is not None
    }
    return (before or TrainingStatus()).model_copy(update=known)


def _largest(reports: Sequence[dict[str, Any]], field: str) -> Any:
    return max((report[field] for report in reports if field in report), default=None)


def _total(reports: Sequence[dict[str, Any]], field: str) -> Any:
    known = [report[field] for report in reports if field in report]
    return sum(known) if known else None


def _from_unix_seconds(seconds: float) -> str:
    return format_timestamp(datetime.fromtimestamp(seconds, UTC))


def cost_status(
    ledger: Ledger, training: TrainingStatus | None, *, runs: bool, now: datetime
) -> CostStatus | None:
    """Figures of money until `now`; None before anything is charged."""
    if not ledger.segments:
        return None
    spent, hourly_rate = ledger.spent(now), ledger.hourly_rate()
    samples = training.samples if training else None
    speed = training.samples_per_second if training else None
    uncertain = ledger.uncertain()
    unit_costs = {
        "all_in": all_in(spent, samples),
        "marginal": marginal(hourly_rate, speed) if runs else None,
    }
    known = {name: unit_dollars(cost) for name, cost in unit_costs.items() if cost is not None}
    books = {each.price_book for each in ledger.segments.values() if each.price_book}
    return CostStatus(
        hourly_rate=None if hourly_rate is None else exact_dollars(hourly_rate),
        spent=None if spent is None else exact_dollars(spent),
        spent_at_least=exact_dollars(ledger.spent_at_least(now)) if spent is None else None,
        uncertain=exact_dollars(uncertain) if uncertain else None,
        dollars_per_sample=DollarsPerSample(**known) if known else None,
        price_source=", ".join(sorted(books)) or None,
        as_of=format_timestamp(now),
    )


def cost_without_ledger(before: CostStatus | None, now: datetime) -> CostStatus:
    """What is known of money while the ledger is damaged: no less than was spent before."""
    known = before or CostStatus()
    return CostStatus(
        spent_at_least=known.spent or known.spent_at_least, as_of=format_timestamp(now)
    )


def display(status: TrainingJobStatus, spec: TrainingJobSpec) -> Display:
    """The strings of `kubectl get`, from the figures that status holds."""
    cost, workers = status.cost, status.effective and status.effective.workers
    unit_cost = cost.dollars_per_sample and cost.dollars_per_sample.all_in if cost else None
    spent = cost.spent if cost else None
    return Display(
        workers=f"{status.ready_replicas}/{workers}" if workers else None,
        step=_steps(status.training, spec),
        cost_per_1k_samples=readable_dollars(Decimal(unit_cost) * 1000) if unit_cost else None,
        spent=readable_dollars(Decimal(spent)) if spent else None,
    )


def _steps(training: TrainingStatus | None, spec: TrainingJobSpec) -> str | None:
    if training is None or training.step is None:
        return None
    if spec.training is None:
        return str(training.step)
    return f"{training.step}/{spec.training.planned_samples // spec.training.global_batch_size}"
