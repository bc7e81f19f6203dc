"""A page is written ahead while somebody scrapes, and is never old."""

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.registry import Collector

from kopeck_exporter.metrics_page import MetricsPage

OPENMETRICS = "application/openmetrics-text;version=1.0.0"


class Counting(Collector):
    """Tells how often it was asked."""

    times = 0

    def collect(self) -> Iterator[Metric]:
        self.times += 1
        family = Metric("kopeck_times", "Times.", "gauge")
        family.add_sample("kopeck_times", {"a": "b"}, self.times)
        yield family


def test_a_page_that_was_written_ahead_is_served_as_it_is() -> None:
    collector = Counting()
    metrics = MetricsPage(collector)
    assert b" 1.0\n" in metrics.page("").body
    metrics.write_ahead()
    assert b" 2.0\n" in metrics.page("").body
    assert b" 2.0\n" in metrics.page("").body
    assert collector.times == 2


def test_only_formats_that_are_asked_for_are_written_ahead() -> None:
    collector = Counting()
    metrics = MetricsPage(collector)
    metrics.write_ahead()
    assert collector.times == 0
    for accept in ("", OPENMETRICS):
        metrics.page(accept)
    metrics.write_ahead()
    assert collector.times == 4
    assert metrics.page(OPENMETRICS).body.endswith(b"# EOF\n")
    assert b"EOF" not in metrics.page("").body


def test_once_it_is_stopped_pages_are_of_the_moment() -> None:
    collector = Counting()
    metrics = MetricsPage(collector)
    metrics.page("")
    metrics.write_ahead()
    metrics.stop()
    metrics.write_ahead()
    times = collector.times
    metrics.page("")
    assert collector.times == times + 1
    metrics.keep_ready()  # returns
