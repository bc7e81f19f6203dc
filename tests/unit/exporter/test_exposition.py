"""Pages are what prometheus_client would write, to the byte."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, Metric
from prometheus_client import generate_latest as text_by_the_client
from prometheus_client.openmetrics.exposition import generate_latest as openmetrics_by_the_client
from prometheus_client.registry import Collector

from kopeck_exporter.exposition import openmetrics_page, text_page
from tests.unit.exporter.reporting import A_DECISION, A_WINDOW
from tests.unit.exporter.test_collector import Scraped


class Awkward(Collector):
    """Values and texts that need care."""

    def collect(self) -> Iterator[Metric]:
        for kind in ("counter", "gauge", "info", "histogram"):
            family = Metric(f"kopeck_{kind}", 'A "quoted" \\ text\nof two lines.', kind)
            suffix = {"counter": "_total", "info": "_info", "histogram": "_bucket"}.get(kind, "")
            for value in (0, 1, 1.5, 2**53, 1e-9, 123456789.25, float("inf")):
                labels = {"b": f'"\\\n{value}', "a": "ü"}
                family.add_sample(f"kopeck_{kind}{suffix}", labels, value)
            yield family


@pytest.fixture
def complete(tmp_path: Path) -> Scraped:
    scraped = Scraped(tmp_path / "annotations")
    scraped.podinfo.write_text('kopeck.dev/hourly-rate-dollars="98.32"\n')
    for rank in (0, 1):
        scraped.receive(rank=rank, tokens=7, compile_decision=A_DECISION, comm_window=A_WINDOW)
    scraped.sampled()
    return scraped


def registered(collector: Collector) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(collector)
    return registry


def test_a_full_scrape_is_the_clients_in_both_formats(complete: Scraped) -> None:
    collector = complete.collector
    registry = registered(collector)
    assert text_page(collector.collect()) == text_by_the_client(registry)
    assert openmetrics_page(collector.collect()) == openmetrics_by_the_client(registry)  # type: ignore[no-untyped-call]


def test_so_are_texts_and_values_that_need_care() -> None:
    collector = Awkward()
    registry = registered(collector)
    assert text_page(collector.collect()) == text_by_the_client(registry)
    assert openmetrics_page(collector.collect()) == openmetrics_by_the_client(registry)  # type: ignore[no-untyped-call]
