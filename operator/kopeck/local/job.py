"""Running all workers of a job on this machine, and what came of it."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from time import sleep
from typing import Any

from kopeck.cost.unit_cost import all_in
from kopeck.local.worker import LocalJob, LocalWorker

_POLL_SECONDS = 0.25
# Survivors of a failed worker notice by themselves; this is for those that do not.
_SURVIVORS_SECONDS = 20.0
_PEER_LOST_EXIT_CODE = 181


@dataclass(frozen=True)
class LocalResult:
    """What a run came to; None is unknown."""

    exit_code: int
    seconds: float
    report: dict[str, Any]
    """The termination message of the worker that failed first, or of worker 0."""
    reports: tuple[dict[str, Any], ...]
    """The termination messages of all workers."""
    spent: Decimal | None
    dollars_per_sample: Decimal | None


def run_job(
    job: LocalJob, clock: Callable[[], datetime], tell: Callable[[dict[str, Any]], None]
) -> LocalResult:
    """Run a job to its end; `tell` is called with worker 0's progress while it runs.

    KeyboardInterrupt lets the workers save a checkpoint first, and is raised again.
    """
    started = clock()
    workers: list[LocalWorker] = []
    try:
        # One by one: those that were started are ended even if a later one cannot be.
        for index in range(job.spec.workers.replicas):
            workers.append(LocalWorker(job, index))  # noqa: PERF401
        failed = _follow(workers, clock, tell)
    finally:
        for worker in workers:
            worker.ask_to_end()
        for worker in workers:
            worker.stop()
    return _result(job, workers, failed, clock() - started)


def _follow(
    workers: list[LocalWorker],
    clock: Callable[[], datetime],
    tell: Callable[[dict[str, Any]], None],
) -> LocalWorker | None:
    """The worker that failed first; None once all have ended well."""
    failed: list[LocalWorker] = []
    give_up_at: datetime | None = None
    while any(worker.exit_code() is None for worker in workers):
        tell(workers[0].progress())
        failed += [each for each in workers if each.exit_code() and each not in failed]
        if failed and give_up_at is None:
            give_up_at = clock() + timedelta(seconds=_SURVIVORS_SECONDS)
        if give_up_at and clock() > give_up_at:
            break
        sleep(_POLL_SECONDS)
    failed += [each for each in workers if each.exit_code() and each not in failed]
    return min(failed, key=_is_consequence, default=None)


def _is_consequence(worker: LocalWorker) -> bool:
    """A worker that lost a peer may be gone before the one that was killed is."""
    return worker.exit_code() == _PEER_LOST_EXIT_CODE


def _result(
    job: LocalJob, workers: list[LocalWorker], failed: LocalWorker | None, held: timedelta
) -> LocalResult:
    worker = failed or workers[0]
    reports = tuple(each.final_report() for each in workers)
    report = reports[workers.index(worker)]
    spent = None
    if job.hourly_rate is not None:
        hours = Decimal(held // timedelta(microseconds=1)) / Decimal(3_600_000_000)
        spent = job.hourly_rate * job.spec.workers.replicas * hours
    return LocalResult(
        exit_code=worker.exit_code() or 0,
        seconds=held.total_seconds(),
        report=report,
        reports=reports,
        spent=spent,
        dollars_per_sample=all_in(spent, report.get("samples")),
    )
