"""What is known of the worker's ranks: the last report of each, and totals that never fall."""

from dataclasses import dataclass
from threading import Lock

from kopeck_exporter.fields import MalformedReportError
from kopeck_exporter.known import total
from kopeck_exporter.report import Report
from kopeck_exporter.totals import ZERO, Totals

STALE_SECONDS = 10.0  # a rank that lives reports every 2 s at the latest

PAUSE_SECONDS = 10.0
PAUSE_STEPS = 10
"""How long no step may end, in seconds and in mean step times, the longer of the two, until the
rates of recent steps say nothing of now. A usual checkpoint is shorter; what is longer, such as a
compilation in the middle of a training, trains nothing and is paid for."""


@dataclass(frozen=True, slots=True)
class RankState:
    """A rank's last report, which connection it came by, and when, on the monotonic clock.

    `earlier_totals` are those of processes that this rank had before its present one.
    """

    report: Report
    connection: int
    received_seconds: float
    earlier_totals: Totals
    process_totals: Totals

    @property
    def totals(self) -> Totals:
        return self.earlier_totals.plus(self.process_totals)

    def age_seconds(self, now_seconds: float) -> float:
        return max(0.0, now_seconds - self.received_seconds)

    def is_fresh(self, now_seconds: float) -> bool:
        return self.age_seconds(now_seconds) <= STALE_SECONDS

    def is_stepping(self, now_seconds: float) -> bool:
        """Whether the rates of its recent steps hold now. A report alone, without steps, is none.

        A program that does not tell when its last step ended is believed while it reports.
        """
        if not self.is_fresh(now_seconds):
            return False
        idle_seconds = self.report.step_idle_seconds
        if idle_seconds is None:
            return True
        longest = max(PAUSE_SECONDS, PAUSE_STEPS * (self.report.mean_step_seconds or 0.0))
        return idle_seconds + self.age_seconds(now_seconds) <= longest


class Worker:
    """The ranks of one worker. One thread receives, others read."""

    def __init__(self, processes: int) -> None:
        self.processes = processes
        self._ranks: dict[int, RankState] = {}
        self._lock = Lock()

    def receive(self, report: Report, connection: int, now_seconds: float) -> None:
        """Take in a report; `connection` numbers the senders in the order of their arrival.

        Raises MalformedReportError for a rank that this worker does not have.
        """
        if report.local_rank >= self.processes:
            raise MalformedReportError(f"local_rank is not below {self.processes}")
        with self._lock:
            last = self._ranks.get(report.local_rank)
            if last is None or not _is_outdated(report, connection, last):
                if last and report.is_last:
                    now_seconds = last.received_seconds  # which makes no figure fresh again
                state = _next_state(report, connection, now_seconds, last)
                self._ranks[report.local_rank] = state

    def ranks(self) -> list[RankState]:
        """Those that have reported, by local rank."""
        with self._lock:
            return [self._ranks[each] for each in sorted(self._ranks)]

    def gpu_uuids(self) -> frozenset[str]:
        """Of the GPUs that the ranks say they use."""
        reports = [rank.report for rank in self.ranks()]
        return frozenset(each.gpu_uuid for each in reports if each.gpu_uuid is not None)

    def all_ranks(self) -> list[RankState] | None:
        """None until each rank has reported.

        After a restart of the exporter a sum over the first ranks to come back would be below
        what was exported before, which Prometheus takes for a counter that began anew.
        """
        ranks = self.ranks()
        return ranks if len(ranks) == self.processes else None


def furthest_report(ranks: list[RankState]) -> Report:
    """The report with the highest step; of those, one with a loss."""
    reports = [rank.report for rank in ranks]
    return max(reports, key=lambda each: (each.step or 0, each.loss is not None))


def samples_per_second(ranks: list[RankState], now_seconds: float) -> float | None:
    """Sum over `ranks`; None if the rate of one is unknown, or it has stopped to step."""
    return total(
        rank.report.samples_per_second if rank.is_stepping(now_seconds) else None for rank in ranks
    )


def mfu(ranks: list[RankState], now_seconds: float) -> float | None:
    """Mean over `ranks`; None if it is unknown of one, or one has stopped to step."""
    summed = total(rank.report.mfu if rank.is_stepping(now_seconds) else None for rank in ranks)
    return None if summed is None else summed / len(ranks)


def _is_outdated(report: Report, connection: int, last: RankState) -> bool:
    """A process sends in order, so only what an older connection still held comes late.

    Clocks are not asked: they may step back. The launcher goes on from what the rank left in a
    file, which is old where the disk was full: no new process, then, but nothing new.
    """
    if report.is_last:
        return report.sequence <= last.report.sequence
    if connection == last.connection:
        return report.sequence < last.report.sequence
    return connection < last.connection


def _next_state(
    report: Report, connection: int, now_seconds: float, last: RankState | None
) -> RankState:
    if last is None:
        return RankState(report, connection, now_seconds, ZERO, report.totals)
    if connection != last.connection and _is_new_process(report, last):
        return RankState(report, connection, now_seconds, last.totals, report.totals)
    totals = last.process_totals.raised_to(report.totals)
    return RankState(report, connection, now_seconds, last.earlier_totals, totals)


def _is_new_process(report: Report, last: RankState) -> bool:
    """Whole numbers only: seconds may fall by rounding within one process."""
    return (
        report.sequence < last.report.sequence
        or report.totals.samples < last.process_totals.samples
        or report.totals.steps < last.process_totals.steps
    )
