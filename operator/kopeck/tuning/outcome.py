"""What the training of one point has shown."""

import re
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from kopeck.cost.unit_cost import marginal
from kopeck.tuning.points import Point

MemoryKind = Literal["device", "resident"]
"""Allocated on the GPU, or resident in the host's memory where there is none."""

_OUT_OF_MEMORY = re.compile(
    r"out of ?memory"  # CUDA, NCCL, torch.OutOfMemoryError
    r"|MemoryError\b"  # numpy's too
    r"|can(no|')t allocate memory"  # the system, and torch's allocator on CPUs
    r"|CUBLAS_STATUS_ALLOC_FAILED",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A point that trains."""

    point: Point
    step_seconds: float
    """Median of the steps after warm-up, of the slowest worker."""
    peak_bytes: int
    """Of the rank that took most."""
    memory: MemoryKind
    dollars_per_sample: Decimal | None
    """None while the machine's price is unknown."""


@dataclass(frozen=True, kw_only=True)
class Infeasible:
    """A point that cannot be used."""

    point: Point
    kind: Literal["out-of-memory", "skipped", "failed"]
    reason: str


Outcome = Measured | Infeasible


def success(
    point: Point,
    reports: Sequence[Mapping[str, Any]],
    *,
    global_batch: int,
    dollars_per_hour: Decimal | None,
) -> Outcome:
    """Of a training that ended well, by the termination messages of all its workers.

    `dollars_per_hour` are those of all workers together.
    """
    step_seconds = _largest(reports, "stepSeconds")
    device_bytes = _largest(reports, "peakDeviceBytes")
    peak_bytes = device_bytes or _largest(reports, "peakResidentBytes")
    if not step_seconds or peak_bytes is None:
        reason = "no step ran without compiling; measure more --steps"
        return Infeasible(point=point, kind="failed", reason=reason)
    return Measured(
        point=point,
        step_seconds=step_seconds,
        peak_bytes=peak_bytes,
        memory="device" if device_bytes else "resident",
        dollars_per_sample=marginal(dollars_per_hour, global_batch / step_seconds),
    )


def failure(point: Point, exit_code: int, report: Mapping[str, Any]) -> Infeasible:
    """Of a training that failed, by the termination message of the worker that failed first.

    `exit_code` is the launcher's, negative where a signal ended it.
    """
    message = report.get("message") or f"the launcher ended with {exit_code}"
    killed = report.get("firstFailure", {}).get("signal") == "SIGKILL"
    if killed or exit_code == -signal.SIGKILL:
        reason = "killed, as Linux does where memory is short"
        return Infeasible(point=point, kind="out-of-memory", reason=reason)
    if _OUT_OF_MEMORY.search(message):
        return Infeasible(point=point, kind="out-of-memory", reason="out of memory")
    return Infeasible(point=point, kind="failed", reason=message)


def skipped_after(point: Point, outcomes: Sequence[Outcome]) -> Infeasible | None:
    """The outcome of a point that needs more memory than one that had too little; else None."""
    for other in outcomes:
        is_short = isinstance(other, Infeasible) and other.kind == "out-of-memory"
        is_alike = other.point.activations == point.activations
        if is_short and is_alike and other.point.micro_batch <= point.micro_batch:
            reason = f"skipped: {other.point.micro_batch} ran out of memory"
            return Infeasible(point=point, kind="skipped", reason=reason)
    return None


def _largest(reports: Sequence[Mapping[str, Any]], name: str) -> Any:
    """None where a worker does not say."""
    values: list[Any] = [report.get(name) for report in reports]
    return None if None in values else max(values)
