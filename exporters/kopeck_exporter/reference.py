"""The reference page of the metrics, `python -m kopeck_exporter.reference > docs/metrics.md`."""

import sys

from kopeck_exporter.names import METRICS, ExportedBy, Metric

_HEAD = """\
# Metrics

Generated from `kopeck_exporter/names.py` by
`python -m kopeck_exporter.reference > docs/metrics.md`.

What is unknown or stale is absent: never zero, never NaN. Ratios are 0 to 1, times are seconds.
"""

_WORKERS = """
## Of each worker

Served by the sidecar of a worker's pod at `:9401/metrics`; `namespace` and `pod` come from the
scrape. Every attempt is a new pod with new series, so these are for rates and present values; the
totals of a job come from the operator.
"""

_OPERATOR = """
## Of the operator

Served by the operator. Its target needs `honorLabels: true`, so that `namespace` stays that of
the job.
"""


def reference_page() -> str:
    """Markdown, with one section per metric."""
    return _HEAD + _WORKERS + _sections("worker") + _OPERATOR + _sections("operator")


def _sections(exported_by: ExportedBy) -> str:
    return "".join(_section(each) for each in METRICS if each.exported_by == exported_by)


def _section(metric: Metric) -> str:
    kind = f"{metric.type}, {metric.unit}" if metric.unit else metric.type
    facts = [kind]
    if metric.labels:
        facts.append("labels " + ", ".join(f"`{label}`" for label in metric.labels))
    if metric.buckets:
        facts.append("buckets " + ", ".join(f"{bound:g}" for bound in metric.buckets))
    return f"\n### `{metric.name}`\n\n{metric.help}\n\n{'; '.join(facts)}\n"


if __name__ == "__main__":
    sys.stdout.write(reference_page())
