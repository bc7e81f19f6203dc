"""Metrics of jobs are what their statuses say."""

from prometheus_client import CollectorRegistry, generate_latest

from kopeck.control.cache import Cache
from kopeck.control.metrics import OperatorMetrics
from kopeck_exporter.names import METRICS
from tests.builders import a_job_view


def a_cache(version: int, spent: str | None, cache: Cache | None = None) -> Cache:
    status = {"cost": {} if spent is None else {"spent": spent}}
    manifest = dict(a_job_view(status).manifest)
    manifest["metadata"] = manifest["metadata"] | {"resourceVersion": str(version)}
    cache = cache or Cache()
    cache.see_job(manifest)
    return cache


def cost(registry: CollectorRegistry) -> float | None:
    labels = {"namespace": "default", "training_job": "job"}
    return registry.get_sample_value("kopeck_job_cost_dollars_total", labels)


def registry_of(cache: Cache) -> CollectorRegistry:
    return OperatorMetrics(cache, lambda: 0, lambda: 0.0).registry


def test_every_series_is_of_a_metric_that_the_reference_lists() -> None:
    metrics = OperatorMetrics(a_cache(1, "12.5"), lambda: 0, lambda: 0.0)
    metrics.reconcile_seconds.observe(0.1)
    metrics.count_request("GET", "/api/v1/namespaces/team/pods", 200)
    told = {
        line.partition("{")[0].partition(" ")[0]
        for line in generate_latest(metrics.registry).decode().splitlines()
        if not line.startswith("#")
    }
    known = {each.name for each in METRICS if each.exported_by == "operator"}
    histograms = {each.name for each in METRICS if each.type == "histogram"}
    parts = {f"{name}_{part}" for name in histograms for part in ("bucket", "count", "sum")}
    assert told <= known | parts
    assert {"kopeck_reconcile_seconds_count", "kopeck_api_requests_total"} <= told


def test_the_cost_of_a_job_is_what_its_status_says() -> None:
    assert cost(registry_of(a_cache(1, "12.5"))) == 12.5


def test_a_correction_downward_is_held_until_growth_passes_it() -> None:
    cache = a_cache(1, "12.5")
    registry = registry_of(cache)
    told = [cost(registry)]
    for version, spent in ((2, "12.0"), (3, "12.4"), (4, "13.0")):
        a_cache(version, spent, cache)
        told.append(cost(registry))
    assert told == [12.5, 12.5, 12.5, 13.0]


def test_an_unknown_cost_is_absent_and_not_zero() -> None:
    assert cost(registry_of(a_cache(1, None))) is None
