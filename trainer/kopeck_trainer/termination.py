"""The termination message: the last figures of a worker and why it ended, in its pod's status."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kopeck_exporter.names import PHASES
from kopeck_trainer.exit_codes import ExitClass
from kopeck_trainer.ranks import RankEnd

MAX_BYTES = 4096
"""The kubelet cuts off what is longer, see `terminationMessagePath` of the container."""

Report = Mapping[str, Any]


def termination_message(
    exit_class: ExitClass, message: str, failure: RankEnd | None, reports: Sequence[Report]
) -> dict[str, Any]:
    """As stored; what no rank reported is absent."""
    known = {
        "reportedAt": _largest(reports, "time"),
        "phaseSeconds": _mean_by_phase(reports),
        "step": _largest(reports, "step"),
        "samples": _largest(reports, "job_samples"),
        "loss": _any(reports, "loss"),
        "nonfiniteLosses": _largest(reports, "nonfinite_losses"),
        "lossSpikes": _largest(reports, "loss_spikes"),
        "checkpointStep": _largest(reports, "checkpoint_step"),
        "checkpointRequest": _any(reports, "checkpoint_request"),
        "stepSeconds": _largest(reports, "steady_step_seconds"),
        "peakDeviceBytes": _largest(reports, "peak_device_bytes"),
        "peakResidentBytes": _largest(reports, "peak_resident_bytes"),
        "samplesPerSecond": _sum(reports, "samples_per_second"),
        "mfu": _mean(reports, "mfu"),
        "compileMode": _any(reports, "compile_mode"),
        "compileDecision": (_any(reports, "compile_decision") or {}).get("why"),
        "compileSeconds": _largest(reports, "compile_seconds"),
        "graphBreaks": _sum(reports, "graph_breaks"),
        "recompiles": _sum(reports, "recompiles"),
        "compileCacheHits": _sum(reports, "compile_cache_hits"),
        "compileCacheMisses": _sum(reports, "compile_cache_misses"),
        "eagerFallbacks": _sum(reports, "eager_fallbacks"),
        "numericsMismatch": _any(reports, "numerics_mismatch"),
        "firstFailure": _failure(failure) if failure else None,
        "message": message,
    }
    figures = {name: value for name, value in known.items() if value is not None}
    return {"v": 1, "exitClass": exit_class, **figures}


def write_termination_message(path: Path, content: Mapping[str, Any]) -> None:
    """A message that is too long loses its end; the figures stay whole."""
    surplus = len(_encoded(content)) - MAX_BYTES
    if surplus > 0:
        kept = content["message"].encode()[: -surplus - len("…".encode())]
        content = {**content, "message": kept.decode(errors="ignore") + "…"}
    path.write_bytes(_encoded(content))


def _encoded(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


def _failure(end: RankEnd) -> dict[str, Any]:
    failure: dict[str, Any] = {"rank": end.rank, "exitCode": end.exit_code}
    if end.signal_name:
        failure["signal"] = end.signal_name
    return failure


def _values(reports: Sequence[Report], name: str) -> list[Any]:
    return [report[name] for report in reports if report.get(name) is not None]


def _largest(reports: Sequence[Report], name: str) -> Any:
    return max(_values(reports, name), default=None)


def _sum(reports: Sequence[Report], name: str) -> Any:
    values = _values(reports, name)
    return sum(values) if values else None


def _mean(reports: Sequence[Report], name: str) -> Any:
    values = _values(reports, name)
    return sum(values) / len(values) if values else None


def _mean_by_phase(reports: Sequence[Report]) -> dict[str, float] | None:
    """To the millisecond, without those that took no time; None where no rank told."""
    phases: list[dict[str, float]] = _values(reports, "phase_seconds")
    means = {
        phase: round(sum(each.get(phase, 0.0) for each in phases) / len(phases), 3)
        for phase in (PHASES if phases else ())
    }
    return {phase: seconds for phase, seconds in means.items() if seconds} or None


def _any(reports: Sequence[Report], name: str) -> Any:
    """The same on all ranks, so the first that knows it."""
    return next(iter(_values(reports, name)), None)
