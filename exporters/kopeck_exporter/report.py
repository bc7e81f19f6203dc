"""One message of a rank, and the checks that it passes before anything is counted."""

import sys
from dataclasses import dataclass
from typing import Any

from kopeck_exporter.comm_window import CommWindow, window_if_known
from kopeck_exporter.decision import CompileDecision, decision_if_known
from kopeck_exporter.fields import (
    MalformedReportError,
    Message,
    checked_number,
    checked_whole,
    is_number,
    number,
    number_if_known,
    text_if_known,
    whole,
    whole_if_known,
    word_if_known,
)
from kopeck_exporter.names import (
    PHASES,
    RECOMPILE_REASONS,
    STEP_JITTER_SECONDS_BUCKETS,
    STEP_PARTS,
    STEP_SECONDS_BUCKETS,
    WINDOW_FAULTS,
)
from kopeck_exporter.totals import Totals

VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a rank process says of itself; totals count from the start of the process.

    `step` and `job_samples` belong to the job, resumed steps included. None is unknown.
    """

    rank: int
    local_rank: int
    sequence: int
    time_unix_seconds: float
    step: int | None
    job_samples: int | None
    totals: Totals
    loss: float | None
    step_seconds: float | None
    steady_step_seconds: float | None
    """Median of the last steps after the warm-up."""
    samples_per_second: float | None
    """Over recent steps, as `mfu` is."""
    mean_step_seconds: float | None
    """Of recent steps, from the end of one to the end of the next."""
    step_idle_seconds: float | None
    """Since the last step ended."""
    mfu: float | None
    compile_mode: str | None
    compile_decision: CompileDecision | None
    numerics_mismatch: str | None
    """A sentence: how a compile mode differs from eager, so that it is not used."""
    checkpoint_step: int | None
    checkpoint_request: str | None
    """The last one that a checkpoint has answered."""
    comm_window: CommWindow | None
    profiler_idle_seconds: float | None
    """Since torch's profiler was on last, 0 while it is; None before the first trace window."""
    gpu_uuid: str | None
    is_last: bool
    """The launcher's word on a rank that has ended."""


def read_report(message: Message) -> Report:
    """Raises MalformedReportError for anything but a report of this version."""
    if message.get("v") != VERSION:
        raise MalformedReportError(f"v is not {VERSION}")
    return Report(
        rank=whole(message, "rank"),
        local_rank=whole(message, "local_rank"),
        sequence=whole(message, "seq"),
        time_unix_seconds=number(message, "time"),
        step=whole_if_known(message, "step"),
        job_samples=whole_if_known(message, "job_samples"),
        totals=_totals(message),
        loss=_loss(message),
        step_seconds=number_if_known(message, "step_seconds"),
        steady_step_seconds=number_if_known(message, "steady_step_seconds"),
        samples_per_second=number_if_known(message, "samples_per_second"),
        mean_step_seconds=number_if_known(message, "mean_step_seconds"),
        step_idle_seconds=number_if_known(message, "step_idle_seconds"),
        mfu=number_if_known(message, "mfu"),
        compile_mode=word_if_known(message, "compile_mode"),
        compile_decision=decision_if_known(message, "compile_decision"),
        numerics_mismatch=text_if_known(message, "numerics_mismatch"),
        checkpoint_step=whole_if_known(message, "checkpoint_step"),
        checkpoint_request=text_if_known(message, "checkpoint_request"),
        comm_window=window_if_known(message, "comm_window"),
        profiler_idle_seconds=number_if_known(message, "profiler_idle_seconds"),
        gpu_uuid=text_if_known(message, "gpu_uuid"),
        is_last=message.get("is_last") is True,
    )


def _totals(message: dict[str, Any]) -> Totals:
    return Totals(
        samples=whole(message, "samples"),
        tokens=whole_if_known(message, "tokens"),
        step_bucket_counts=_bucket_counts(message, "step_bucket_counts", STEP_SECONDS_BUCKETS),
        step_seconds_sum=number(message, "step_seconds_sum"),
        jitter_bucket_counts=_bucket_counts_if_known(
            message, "jitter_bucket_counts", STEP_JITTER_SECONDS_BUCKETS
        ),
        jitter_seconds_sum=number_if_known(message, "jitter_seconds_sum"),
        phase_seconds=_numbers_by(message, "phase_seconds", PHASES),
        step_part_seconds=_numbers_by_if_known(message, "step_part_seconds", STEP_PARTS),
        compile_seconds=number_if_known(message, "compile_seconds"),
        graph_breaks=whole_if_known(message, "graph_breaks"),
        recompiles_by_reason=_recompiles_by_reason(message),
        compile_cache_hits=whole_if_known(message, "compile_cache_hits"),
        compile_cache_misses=whole_if_known(message, "compile_cache_misses"),
        cudagraph_skips=whole_if_known(message, "cudagraph_skips"),
        eager_fallbacks=whole_if_known(message, "eager_fallbacks"),
        nonfinite_losses=whole_if_known(message, "nonfinite_losses"),
        loss_spikes=whole_if_known(message, "loss_spikes"),
        window_faults=_numbers_by_if_known(message, "window_faults", WINDOW_FAULTS),
        dropped_reports=whole_if_known(message, "dropped_reports"),
    )


def _recompiles_by_reason(message: Message) -> tuple[int, ...] | None:
    """In the order of RECOMPILE_REASONS. They add up to all recompiles, whatever reasons are told.

    A trainer of another version may tell none, or some that are not known here: then it is `other`.
    """
    recompiles = whole_if_known(message, "recompiles")
    if recompiles is None:
        return None
    told = message.get("recompile_reasons") or {}
    if not isinstance(told, dict):
        raise MalformedReportError("recompile_reasons does not map reasons to counts")
    *reasons, _ = RECOMPILE_REASONS
    counts = [checked_whole(told.get(reason, 0), "recompile_reasons") for reason in reasons]
    if sum(counts) > recompiles:
        raise MalformedReportError("recompile_reasons add up to more than recompiles")
    return (*counts, recompiles - sum(counts))


def _loss(message: dict[str, Any]) -> float | None:
    """None too if it is not finite: a run that diverges must not lose its counts."""
    value = message.get("loss")
    if value is None:
        return None
    if not is_number(value):
        raise MalformedReportError("loss is no number")
    return float(value) if abs(value) <= sys.float_info.max else None


def _bucket_counts(message: Message, name: str, bounds: tuple[float, ...]) -> tuple[int, ...]:
    counts = message.get(name)
    if not isinstance(counts, list) or len(counts) != len(bounds) + 1:
        raise MalformedReportError(f"{name} is no list of {len(bounds) + 1} counts")
    return tuple(checked_whole(count, name) for count in counts)


def _bucket_counts_if_known(
    message: Message, name: str, bounds: tuple[float, ...]
) -> tuple[int, ...] | None:
    return None if message.get(name) is None else _bucket_counts(message, name, bounds)


def _numbers_by(message: Message, name: str, keys: tuple[str, ...]) -> tuple[float, ...]:
    """In the order of `keys`; one that is not named is 0."""
    numbers = message.get(name)
    if not isinstance(numbers, dict) or not numbers.keys() <= set(keys):
        raise MalformedReportError(f"{name} does not map {', '.join(keys)} to numbers")
    return tuple(checked_number(numbers.get(key, 0.0), name) for key in keys)


def _numbers_by_if_known(
    message: Message, name: str, keys: tuple[str, ...]
) -> tuple[float, ...] | None:
    return None if message.get(name) is None else _numbers_by(message, name, keys)
