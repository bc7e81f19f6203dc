"""A report as JSON: seconds, bytes, ratios from 0 to 1; null where something is not known."""

from collections.abc import Sequence
from typing import Any

from kopeck.trace.breakdown import Breakdown
from kopeck.trace.hta import HtaFigures
from kopeck.trace.launches import LaunchFigures
from kopeck.trace.ranking import Relative, relatives
from kopeck.trace.report import RankReport, Report
from kopeck.trace.waiting import Split


def as_document(report: Report) -> dict[str, Any]:
    """The whole report."""
    ranks = zip(report.ranks, relatives(report.ranks), strict=True)
    return {
        "ranks": [_rank(each, relative) for each, relative in ranks],
        "collectives": [
            {
                "kind": each.kind.value,
                "bytes": each.bytes,
                "dtype": each.dtype,
                "ranks": each.ranks,
                "count": each.count,
                "transfer_seconds": each.transfer_seconds,
                "algorithm_bytes_per_second": each.algorithm_bytes_per_second,
                "bus_bytes_per_second": each.bus_bytes_per_second,
                "is_above_link": each.is_above_link,
            }
            for each in report.bandwidths
        ],
        "stragglers": list(report.stragglers),
        "notes": list(report.notes),
    }


def as_hta_document(files: Sequence[str], figures: Sequence[HtaFigures | None]) -> dict[str, Any]:
    """What HTA answers, in its microseconds and percent."""
    ranks = zip(files, figures, strict=True)
    return {"ranks": [{"file": file} | (_hta(each) if each else {}) for file, each in ranks]}


def _rank(rank: RankReport, relative: Relative) -> dict[str, Any]:
    summary = rank.summary
    return {
        "file": summary.origin.file,
        "rank": summary.origin.rank,
        "world_size": summary.origin.world_size,
        "gpu": summary.origin.gpu,
        "steps": [
            {"number": step.number, "seconds": _seconds(step.end_ns - step.start_ns)}
            for step in summary.steps
        ],
        "kernels_per_step": summary.kernels_per_step,
        "time": _breakdown(summary.breakdown) if summary.breakdown else None,
        "communication": _split(rank.split) if rank.split else None,
        "launches": _launches(summary.launches) if summary.launches else None,
        "synchronisations": [
            {
                "call": each.call,
                "stack": list(each.stack),
                "is_implicit": each.is_implicit,
                "count": each.count,
                "seconds": each.seconds,
            }
            for each in summary.synchronisations
        ],
        "clock": {
            "offset_seconds": rank.clock.offset_seconds,
            "spread_seconds": rank.clock.spread_seconds,
        }
        if rank.clock
        else None,
        "score": rank.score,
        "by_best": {
            "own": relative.own,
            "compute": relative.compute,
            "exposed_communication": relative.exposed,
            "idle": relative.idle,
        },
    }


def _breakdown(part: Breakdown) -> dict[str, Any]:
    return {
        "span_seconds": _seconds(part.span_ns),
        "compute_seconds": _seconds(part.compute_ns),
        "exposed_communication_seconds": _seconds(part.exposed_ns),
        "memory_seconds": _seconds(part.memory_ns),
        "idle_seconds": _seconds(part.idle_ns),
        "host_wait_seconds": _seconds(part.idle.host_wait_ns),
        "kernel_wait_seconds": _seconds(part.idle.kernel_wait_ns),
        "other_idle_seconds": _seconds(part.idle.other_ns),
        "communication_seconds": _seconds(part.communication_ns),
        "peer_copy_seconds": _seconds(part.peer_copy_ns),
        "overlap_seconds": _seconds(part.overlap_ns),
        "overlap_ratio": part.overlap_ratio,
        "kernels": part.kernels,
    }


def _split(split: Split) -> dict[str, Any]:
    return {
        "transfer_seconds": _seconds(split.transfer_ns),
        "wait_seconds": _seconds(split.wait_ns),
        "unsplit_seconds": _seconds(split.unsplit_ns),
        "held_up_seconds": _seconds(split.held_up_ns),
    }


def _launches(figures: LaunchFigures) -> dict[str, Any]:
    return {
        "launched": figures.launched,
        "delay_p50_seconds": figures.delay_p50_seconds,
        "delay_p99_seconds": figures.delay_p99_seconds,
        "before_launch": figures.before_launch,
    }


def _hta(figures: HtaFigures) -> dict[str, Any]:
    return {
        "comp_comm_overlap_pctg": figures.overlap_percent,
        "communication_us": figures.communication_us,
        "overlap_us": figures.overlap_us,
        "exposed_us": figures.exposed_us,
        "idle_time_us": figures.idle_us,
        "compute_time_us": figures.compute_us,
        "non_compute_time_us": figures.non_compute_us,
        "kernel_time_us": figures.kernel_time_us,
        "idle_by_stream_us": {
            str(stream): idle._asdict() for stream, idle in figures.idle_by_stream.items()
        },
        "launches": figures.launches._asdict() if figures.launches else None,
    }


def _seconds(nanoseconds: int) -> float:
    return nanoseconds / 1e9
