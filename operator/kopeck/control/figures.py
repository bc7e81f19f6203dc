"""Live figures in a job's status: fetched from worker 0, refreshed rarely, exact at the end."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import aiohttp

from kopeck.api.errors import LedgerError
from kopeck.api.job_key import JobKey
from kopeck.api.names import pod_name
from kopeck.api.status import CostStatus, TrainingJobStatus
from kopeck.api.timestamps import parse_timestamp
from kopeck.cost.ledger import Ledger
from kopeck.kube.cluster import Cluster
from kopeck.kube.errors import ApiError
from kopeck.plan.checkpoint_request import awaits_answer, with_answer
from kopeck.plan.degraded_condition import with_degraded_condition
from kopeck.plan.figures import (
    cost_status,
    cost_without_ledger,
    display,
    training_unheard_of,
    training_while_running,
)
from kopeck.plan.job_view import JobView
from kopeck.plan.price_condition import with_price_condition

_log = logging.getLogger("kopeck.figures")


@dataclass(frozen=True)
class Figures:
    """Adds figures to a status when they are due, so that a quiet job is hardly ever written."""

    cluster: Cluster
    refresh: timedelta

    async def added(
        self,
        job: JobView,
        status: TrainingJobStatus,
        ledger: Ledger | LedgerError,
        now: datetime,
    ) -> TrainingJobStatus:
        """The status with figures; without new ones unless it changed anyway or they are due."""
        runs = status.phase == "Running" and status.effective is not None
        is_due = status != job.status or self._are_due(job.status, ledger, now)
        if not job.is_readable or not (is_due or (runs and awaits_answer(status))):
            return status
        report = await self._report(job.key, status.attempt) if runs else {}
        answered = with_answer(status, report)
        if not is_due and answered == status:
            return status
        return self._with_figures(job, answered, report, ledger, now)

    def _with_figures(
        self,
        job: JobView,
        status: TrainingJobStatus,
        report: Mapping[str, object],
        ledger: Ledger | LedgerError,
        now: datetime,
    ) -> TrainingJobStatus:
        training, conditions = status.training, status.conditions
        runs = status.phase == "Running"
        if report and status.effective:
            training = training_while_running(training, report, status.effective.workers)
            conditions = with_degraded_condition(conditions, report, now)
        elif runs:
            training = training_unheard_of(training, now)
        status = status.model_copy(
            update={
                "training": training,
                "cost": cost_without_ledger(status.cost, now)
                if isinstance(ledger, LedgerError)
                else cost_status(ledger, training, runs=runs, now=now),
                "conditions": with_price_condition(conditions, ledger, now),
            }
        )
        return status.model_copy(update={"display": display(status, job.spec)})

    def due_in_seconds(
        self, status: TrainingJobStatus, ledger: Ledger | LedgerError, now: datetime
    ) -> float | None:
        """When figures are due again; None while nothing is spent."""
        if isinstance(ledger, LedgerError):
            return self.refresh.total_seconds()  # somebody may have mended it
        return self._refresh_in_seconds(status, now) if ledger.open_segments else None

    def last_seen(self, job: JobView | None) -> datetime | None:
        """When figures were last written: the job's pods were known to live until then."""
        return _as_of(job.status) if job else None

    def _refresh_in_seconds(self, status: TrainingJobStatus, now: datetime) -> float:
        seen = _as_of(status)
        return 0.0 if seen is None else max((seen + self.refresh - now).total_seconds(), 0.0)

    def _are_due(
        self, status: TrainingJobStatus, ledger: Ledger | LedgerError, now: datetime
    ) -> bool:
        if isinstance(ledger, LedgerError):
            is_told = any(each.message == str(ledger) for each in status.conditions)
            runs_on = status.phase == "Running" and self._refresh_in_seconds(status, now) == 0.0
            return not is_told or runs_on
        if ledger.open_segments:
            return self._refresh_in_seconds(status, now) == 0.0
        final = cost_status(ledger, status.training, runs=False, now=now)
        known = status.cost
        if final is None or known is None:
            return final is not known
        return _amounts(final) != _amounts(known)

    async def _report(self, key: JobKey, attempt: int) -> dict[str, object]:
        """What worker 0's exporter says; nothing while it cannot be asked."""
        try:
            name = pod_name(key.name, key.uid, attempt, worker=0)
            return await self.cluster.progress(key.namespace, name)
        except (ApiError, aiohttp.ClientError, TimeoutError, ValueError) as error:
            _log.debug("job=%s progress of worker 0 unknown: %s", key, error)
            return {}


def _as_of(status: TrainingJobStatus) -> datetime | None:
    return parse_timestamp(status.cost.as_of) if status.cost and status.cost.as_of else None


def _amounts(cost: CostStatus) -> tuple[str | None, ...]:
    return cost.spent, cost.spent_at_least, cost.uncertain
