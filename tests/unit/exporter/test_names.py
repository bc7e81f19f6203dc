"""The rules that every metric's definition follows."""

import pytest

from kopeck_exporter.names import (
    JOB_LABELS,
    METRICS,
    WORKER_LABELS,
    Metric,
)

pytestmark = pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)


def test_names_start_with_kopeck_and_are_unique(metric: Metric) -> None:
    assert metric.name.startswith("kopeck_")
    assert [each.name for each in METRICS].count(metric.name) == 1


def test_only_counters_end_in_total_and_infos_in_info(metric: Metric) -> None:
    assert metric.name.endswith("_total") == (metric.type == "counter")
    assert metric.name.endswith("_info") == (metric.type == "info")


def test_a_unit_of_time_or_money_is_in_the_name(metric: Metric) -> None:
    if metric.unit in {"seconds", "dollars", "dollars_per_sample", "samples_per_second"}:
        assert metric.name.removesuffix("_total").endswith(f"_{metric.unit}")


def test_only_histograms_have_buckets_and_those_rise(metric: Metric) -> None:
    assert bool(metric.buckets) == (metric.type == "histogram")
    assert list(metric.buckets) == sorted(set(metric.buckets))


def test_a_workers_metric_says_whose_it_is_and_leaves_job_to_prometheus(metric: Metric) -> None:
    assert not {"job", "instance"} & set(metric.labels)
    if metric.exported_by == "worker":
        assert metric.labels[:2] == WORKER_LABELS
    if metric.name.startswith(("kopeck_job_", "kopeck_dollars_")):
        assert metric.labels[:2] == JOB_LABELS


def test_help_is_a_sentence(metric: Metric) -> None:
    assert metric.help[0].isupper() or metric.help[0].isdigit()
    assert metric.help.endswith(".")
