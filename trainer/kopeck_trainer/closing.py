"""What follows the last report of a rank, until its launcher leaves: the launcher tells it.

So the phases of a worker are the whole life of its container, and the same at the end in the
termination message and at the exporter.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any, Self

from kopeck_exporter.report_socket import ReportSocket

Report = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Moment:
    """One moment on both clocks: reports are told in Unix time, which may be set meanwhile."""

    unix_seconds: float
    monotonic_seconds: float

    @classmethod
    def now(cls) -> Self:
        return cls(unix_seconds=time.time(), monotonic_seconds=monotonic())


@dataclass(frozen=True, kw_only=True)
class LastReport:
    """Of a rank that has ended."""

    content: Report
    """Empty where the rank told nothing."""
    rank_ended_at: float
    """On the monotonic clock."""
    archiving_seconds: float
    """For which the launcher waited for the compile cache's archive, once all ranks had ended."""


def closed(last: LastReport, started_at: float, now: Moment) -> Report:
    """The report as the rank would give it now, had it lived; empty where it told nothing.

    Until its end the rank was in the phase that it told last, which is idle if it left by itself.
    From then on nothing trains. The launcher `started_at`, on the monotonic clock.
    """
    report = last.content
    if not report:
        return report
    told_seconds = sum(report["phase_seconds"].values()) + report["undecided_seconds"]
    told_at = now.monotonic_seconds - (now.unix_seconds - report["time"])
    told_at = max(told_at, started_at + told_seconds)  # the clock may have been set since
    alive_seconds = max(0.0, last.rank_ended_at - told_at)
    over_seconds = max(0.0, now.monotonic_seconds - max(told_at, last.rank_ended_at))
    phases = dict(report["phase_seconds"])
    phases[report["phase"]] += report["undecided_seconds"] + alive_seconds
    phases["compile"] += last.archiving_seconds
    phases["idle"] += max(0.0, over_seconds - last.archiving_seconds)
    return {
        **report,
        "seq": report["seq"] + 1,
        "time": now.unix_seconds,
        "phase": "idle",
        "phase_seconds": phases,
        "undecided_seconds": 0.0,
        "is_last": True,
    }


def tell_exporter(reports: Sequence[Report], environ: Mapping[str, str]) -> None:
    """Once, and without waiting. Each by a connection of its own, as ranks report."""
    path = environ.get("KOPECK_SOCKET")
    if not path:
        return
    for report in filter(None, reports):
        connection = ReportSocket(path)
        connection.send(json.dumps(report).encode())
        connection.close()
