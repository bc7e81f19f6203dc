"""The operator's own metrics; those of jobs are what their statuses say, word for word."""

import re
from collections.abc import Callable, Iterator

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from kopeck.api.job_key import JobKey
from kopeck.control.cache import Cache
from kopeck.plan.job_view import JobView
from kopeck_exporter import names
from kopeck_exporter.names import Metric

_NAMESPACED = re.compile(r"/(?:api/v1|apis/[^/]+/[^/]+)(?:/namespaces/[^/]+)?/([a-z]+)")


class OperatorMetrics:
    """A registry of the operator, filled while it works and read when it is scraped."""

    def __init__(
        self, cache: Cache, queue_depth: Callable[[], int], last_event: Callable[[], float]
    ) -> None:
        # They are series of their own, one for each counter and histogram.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self.reconcile_seconds = Histogram(
            names.RECONCILE_SECONDS.name,
            names.RECONCILE_SECONDS.help,
            buckets=names.RECONCILE_SECONDS.buckets,
            registry=self.registry,
        )
        self._requests = Counter(
            names.API_REQUESTS_TOTAL.name,
            names.API_REQUESTS_TOTAL.help,
            names.API_REQUESTS_TOTAL.labels,
            registry=self.registry,
        )
        self._gauge(names.QUEUE_DEPTH).set_function(queue_depth)
        self._gauge(names.WATCH_LAST_EVENT_TIMESTAMP_SECONDS).set_function(last_event)
        self.registry.register(_JobCollector(cache))

    def count_request(self, method: str, path: str, status: int) -> None:
        """Count an answer of the API server; status 0 is none."""
        match = _NAMESPACED.match(path)
        self._requests.labels(method.lower(), match[1] if match else "other", str(status)).inc()

    def _gauge(self, metric: Metric) -> Gauge:
        return Gauge(metric.name, metric.help, registry=self.registry)


class _JobCollector(Collector):
    """Samples of all jobs, made when scraped: nothing goes stale, deleted jobs are absent."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._highest_cost: dict[JobKey, float] = {}

    def collect(self) -> Iterator[Family]:
        families = {
            metric.name: _family(metric)
            for metric in names.METRICS
            if metric.exported_by == "operator" and metric.labels[:2] == names.JOB_LABELS
        }
        jobs = self._cache.jobs()
        self._highest_cost = {job.key: self._cost(job) for job in jobs if _has_cost(job)}
        for job in jobs:
            _add_samples(families, job, self._highest_cost.get(job.key))
        yield from families.values()

    def _cost(self, job: JobView) -> float:
        """A counter never falls: a correction downward is held until growth passes it."""
        spent = float(job.status.cost.spent or 0) if job.status.cost else 0.0
        return max(spent, self._highest_cost.get(job.key, 0.0))


def _has_cost(job: JobView) -> bool:
    return job.status.cost is not None and job.status.cost.spent is not None


def _family(metric: Metric) -> Family:
    kinds = {"counter": CounterMetricFamily, "gauge": GaugeMetricFamily, "info": InfoMetricFamily}
    name = metric.name.removesuffix("_info") if metric.type == "info" else metric.name
    family: Family = kinds[metric.type](name, metric.help)
    return family


def _add_samples(families: dict[str, Family], job: JobView, cost_dollars: float | None) -> None:
    labels = {"namespace": job.key.namespace, "training_job": job.key.name}
    status, cost = job.status, job.status.cost

    def add(metric: Metric, value: str | float | None, **more: str) -> None:
        if value is not None:
            families[metric.name].add_sample(metric.name, labels | more, float(value))

    add(names.JOB_STATE, 1, state=status.phase)
    if status.effective:
        add(names.JOB_INFO, 1, revision=status.effective.revision)
    if status.training:
        add(names.JOB_SAMPLES_KEPT, status.training.samples)
    add(names.JOB_COST_DOLLARS_TOTAL, cost_dollars)
    if cost and cost.dollars_per_sample:
        for basis in ("all_in", "marginal"):
            add(names.DOLLARS_PER_SAMPLE, getattr(cost.dollars_per_sample, basis), basis=basis)
