"""Samples of our metrics in the client's form, each with the labels that all of a sidecar have."""

from collections.abc import Iterable, Iterator, Mapping

from prometheus_client import Metric as Family

from kopeck_exporter.names import Metric

Labels = Mapping[str, str]


class Families:
    """Builds families: all samples of one metric."""

    def __init__(self, labels: Labels) -> None:
        self.labels = labels

    def of(self, metric: Metric, values: Iterable[tuple[Labels, float]]) -> Family:
        """The client's family classes add `_total` or `_info` themselves, so names lose theirs."""
        name = metric.name.removesuffix("_total").removesuffix("_info")
        family = Family(name, metric.help, metric.type)
        for labels, value in values:
            family.add_sample(metric.name, {**self.labels, **labels}, value)
        return family

    def if_any(self, metric: Metric, values: Iterable[tuple[Labels, float]]) -> Iterator[Family]:
        family = self.of(metric, values)
        if family.samples:
            yield family

    def if_known(self, metric: Metric, value: float | None) -> Iterator[Family]:
        if value is not None:
            yield self.of(metric, [({}, value)])
