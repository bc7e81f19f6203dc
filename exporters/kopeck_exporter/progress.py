"""How far the worker is, for the operator."""

from typing import Any

from kopeck_exporter.known import largest, total
from kopeck_exporter.names import PHASES
from kopeck_exporter.totals import Totals
from kopeck_exporter.worker import (
    RankState,
    Worker,
    furthest_report,
    mfu,
    samples_per_second,
)

VERSION = 1


def progress(worker_index: int, worker: Worker, now_seconds: float) -> dict[str, Any]:
    """The document at /progress; what is unknown has no key. `now_seconds` is monotonic."""
    ranks = worker.ranks()
    known = {"v": VERSION, "worker": worker_index, "ranks": _each(ranks, now_seconds)}
    if ranks:
        known |= _of_job(ranks)
    if (complete := worker.all_ranks()) is not None:
        known |= _of_worker(complete, now_seconds)
    return _without_unknown(known)


def _each(ranks: list[RankState], now_seconds: float) -> list[dict[str, Any]]:
    return [
        _without_unknown(
            {
                "rank": rank.report.rank,
                "stepSeconds": rank.report.step_seconds,
                "ageSeconds": round(rank.age_seconds(now_seconds), 3),
            }
        )
        for rank in ranks
    ]


def _of_job(ranks: list[RankState]) -> dict[str, Any]:
    """What any rank may know; the furthest knows best."""
    furthest = furthest_report(ranks)
    reports = [rank.report for rank in ranks]
    samples = [each.job_samples for each in reports if each.job_samples is not None]
    mismatches = (each.numerics_mismatch for each in reports if each.numerics_mismatch)
    checkpoints = [each.checkpoint_step for each in reports if each.checkpoint_step is not None]
    requests = (each.checkpoint_request for each in reports if each.checkpoint_request)
    return {
        "step": furthest.step,
        "samples": max(samples, default=None),
        "loss": furthest.loss,
        "checkpointStep": max(checkpoints, default=None),
        "checkpointRequest": next(requests, None),
        "compileMode": furthest.compile_mode,
        "compileDecision": furthest.compile_decision and furthest.compile_decision.why,
        "numericsMismatch": next(mismatches, None),
        "reportedAt": max(each.time_unix_seconds for each in reports),
    }


def _of_worker(ranks: list[RankState], now_seconds: float) -> dict[str, Any]:
    """Sums and maxima, which over some of the ranks would say less than is true."""
    totals = [rank.totals for rank in ranks]
    return {
        "phaseSeconds": _mean_by_phase(totals),
        "samplesPerSecond": samples_per_second(ranks, now_seconds),
        "mfu": mfu(ranks, now_seconds),
        "compileSeconds": largest(each.compile_seconds for each in totals),
        "graphBreaks": total(each.graph_breaks for each in totals),
        "recompiles": total(each.recompiles for each in totals),
        "eagerFallbacks": total(each.eager_fallbacks for each in totals),
        "nonfiniteLosses": largest(each.nonfinite_losses for each in totals),
        "lossSpikes": largest(each.loss_spikes for each in totals),
    }


def _mean_by_phase(ranks: list[Totals]) -> dict[str, float]:
    """To the millisecond."""
    sums = map(sum, zip(*(each.phase_seconds for each in ranks), strict=True))
    means = (round(seconds / len(ranks), 3) for seconds in sums)
    return dict(zip(PHASES, means, strict=True))


def _without_unknown(known: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in known.items() if value is not None}
