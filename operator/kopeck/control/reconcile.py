"""One pass over one job: look, charge, plan, act, write status once."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from time import perf_counter

from kopeck.api.errors import LedgerError, SpecError
from kopeck.api.job_key import JobKey
from kopeck.api.names import ANNOTATION_HOURLY_RATE
from kopeck.api.status import TrainingJobStatus
from kopeck.control.actions import Actions
from kopeck.control.cache import Cache
from kopeck.control.events import transition_events
from kopeck.control.figures import Figures
from kopeck.control.ledgers import Ledgers
from kopeck.control.nodes import Node, Nodes
from kopeck.control.status_patch import status_patch
from kopeck.control.surroundings import SurroundingsReader
from kopeck.cost.charging import HeldPod
from kopeck.cost.dollars import exact_dollars
from kopeck.cost.ledger import Ledger
from kopeck.cost.share import node_share
from kopeck.kube.cluster import Cluster
from kopeck.kube.errors import ApiError
from kopeck.plan.conditions import with_condition
from kopeck.plan.job_view import JobView
from kopeck.plan.nccl_decision import vendor_settings
from kopeck.plan.plan import plan
from kopeck.plan.pod_facts import PodFacts
from kopeck.plan.pods import Sidecar
from kopeck.plan.step import Step

_log = logging.getLogger("kopeck.reconcile")

# A refused pod inflates the quota's usage until the next resync: not asked again at once.
_REFUSED_RETRY_SECONDS = 10.0


@dataclass
class Reconciler:
    """Passes over jobs; what it knows lies in the cache and the ledgers."""

    cluster: Cluster
    cache: Cache
    ledgers: Ledgers
    nodes: Nodes
    actions: Actions
    figures: Figures
    surroundings: SurroundingsReader
    sidecar: Sidecar
    pods_known_until: Callable[[], datetime]
    """The last moment of which the cache is known to be true."""
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    async def reconcile(self, key: JobKey) -> float | None:
        """One pass. Returns the seconds until the job is due again, None if nothing is due."""
        started = perf_counter()
        job = self.cache.job(key)
        ledger = await self._charge(key, job)
        if job is None or job.is_deleting:
            return self._let_go(key, ledger)
        await self._tell_rates(key, ledger)
        step = await self._plan(job)
        if step.cannot_be_undone:
            fresh = await self._read_again(key)
            if fresh is None:
                return 0.0
            job, step = fresh, await self._plan(fresh)
        refusals = await self.actions.carry_out(key, step)
        # A decision without the ConfigMap that it names would leave its pods waiting for ever.
        decided = job.status if refusals and step.nccl_config else step.status
        status = _explaining(decided, refusals, self.clock())
        status = await self.figures.added(job, status, ledger, self.clock())
        changed = await self._write(job, status, vendor_settings(step.nccl_config))
        if changed and isinstance(ledger, LedgerError):
            _log.error("job=%s %s", key, ledger)
        _log_pass(job, status, perf_counter() - started, changed=changed)
        if changed:
            return 0.0
        return self._due_in_seconds(step, status, ledger, refused=bool(refusals))

    async def _charge(self, key: JobKey, job: JobView | None) -> Ledger | LedgerError:
        """The ledger, written before anything else: it is the evidence of what was spent.

        Training goes on where it is damaged, and pods that go are remembered until it is mended.
        """
        pods = [*self.cache.pods(key), *self.cache.gone_pods(key)]
        gone = {pod.uid for pod in self.cache.gone_pods(key)}
        nodes = {name: await self.nodes.node(name) for name in {pod.node for pod in pods} if name}
        held = [each for pod in pods if (each := _held(pod, nodes, is_gone=pod.uid in gone))]
        written = self.figures.last_seen(job)
        # While a watch is silent, status is written by a cache that may be old.
        seen_at = min(written, self.pods_known_until()) if written else None
        try:
            ledger = await self.ledgers.observe(key, held, seen_at, self.clock())
        except LedgerError as damaged:
            return damaged
        self.cache.write_off(key, gone)
        return ledger

    def _let_go(self, key: JobKey, ledger: Ledger | LedgerError) -> float | None:
        """Of a deleted job only the money is followed, until its last pod is gone.

        A pod may have gone while the ledger was written: that one is for the next pass.
        """
        if isinstance(ledger, LedgerError):
            _log.error("job=%s is deleted, and not charged: %s", key, ledger)
            return self.figures.refresh.total_seconds()
        if not ledger.open_segments and self.cache.let_go(key):
            self.ledgers.forget(key)
        return None

    async def _tell_rates(self, key: JobKey, ledger: Ledger | LedgerError) -> None:
        """Each pod's hourly rate goes to its exporter, once it has a node."""
        if isinstance(ledger, LedgerError):
            return
        for pod in self.cache.pods(key):
            segment = ledger.segments.get(pod.uid)
            rate = segment.hourly_rate if segment else None
            if rate is None or pod.is_terminal or pod.is_deleting:
                continue
            text = exact_dollars(rate)
            if pod.hourly_rate_annotation == text:
                continue
            annotated = await self.cluster.annotate_pod(
                key.namespace, pod.name, {ANNOTATION_HOURLY_RATE: text}
            )
            if annotated is not None:
                self.cache.see_pod(annotated, self.clock())

    async def _plan(self, job: JobView) -> Step:
        pods = self.cache.pods(job.key)
        try:
            surroundings = await self.surroundings.of(job, pods)
            return plan(job, pods, self.sidecar, self.clock(), surroundings)
        except SpecError as error:
            conditions = with_condition(
                job.status.conditions, "Running", "False", "InvalidSpec", str(error), self.clock()
            )
            return Step(job.status.model_copy(update={"conditions": conditions}))

    async def _read_again(self, key: JobKey) -> JobView | None:
        """The job and its pods as they are now, before what cannot be taken back."""
        manifest = await self.cluster.job(key)
        if manifest is None:
            self.cache.forget_job(key)
            return None
        self.cache.replace_pods(key, await self.cluster.pods_of(key), self.clock())
        return self.cache.see_job(manifest)

    async def _write(
        self, job: JobView, status: TrainingJobStatus, vendor: Mapping[str, str]
    ) -> bool:
        """Write what changed. Raises ConflictError where another writer was first."""
        patch = status_patch(job.manifest["status"], status)
        if not patch:
            return False
        written = await self.cluster.write_status(job.key, job.resource_version, patch)
        self.cache.see_job(written)
        for event in transition_events(job, status, vendor, self.clock()):
            try:
                await self.cluster.create_event(job.key.namespace, event)
            except ApiError as error:
                _log.warning("job=%s event not written: %s", job.key, error)
        return True

    def _due_in_seconds(
        self,
        step: Step,
        status: TrainingJobStatus,
        ledger: Ledger | LedgerError,
        *,
        refused: bool,
    ) -> float | None:
        now = self.clock()
        due = [self.figures.due_in_seconds(status, ledger, now)]
        if step.due_at is not None:
            due.append(max((step.due_at - now).total_seconds(), 0.0))
        if refused:
            due.append(_REFUSED_RETRY_SECONDS)
        return min((seconds for seconds in due if seconds is not None), default=None)


def _held(pod: PodFacts, nodes: Mapping[str, Node | None], *, is_gone: bool) -> HeldPod | None:
    """What the ledger knows of a pod; None while no node holds it."""
    if pod.node is None or pod.scheduled_at is None:
        return None
    node = nodes[pod.node]
    return HeldPod(
        uid=pod.uid,
        name=pod.name,
        attempt=pod.attempt,
        node=pod.node,
        scheduled_at=pod.scheduled_at,
        ended_at=pod.ended_at,
        is_gone=is_gone or pod.is_terminal,
        node_share=node_share(pod.requests, node.capacity) if node else None,
        price_key=node.key if node else None,
    )


def _explaining(status: TrainingJobStatus, refusals: list[str], now: datetime) -> TrainingJobStatus:
    """The status with what the API server refused; the job waits and asks again."""
    if not refusals:
        return status
    said = f"{refusals[0]}" + (f" (and {len(refusals) - 1} more)" if len(refusals) > 1 else "")
    conditions = with_condition(status.conditions, "Running", "False", "Refused", said, now)
    return status.model_copy(update={"conditions": conditions})


def _log_pass(job: JobView, status: TrainingJobStatus, seconds: float, *, changed: bool) -> None:
    revision = status.effective.revision if status.effective else "-"
    _log.log(
        logging.INFO if changed else logging.DEBUG,
        "job=%s attempt=%d revision=%s phase=%s restarts=%d seconds=%.3f",
        job.key,
        status.attempt,
        revision,
        status.phase,
        status.restarts.total,
        seconds,
    )
