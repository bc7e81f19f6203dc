"""What the exporter serves: /metrics, /progress, /healthz."""

import json
from collections.abc import Mapping
from time import monotonic

from kopeck_exporter.metrics_page import MetricsPage
from kopeck_exporter.progress import progress
from kopeck_exporter.server import Page, Render
from kopeck_exporter.worker import Worker


def exporter_pages(worker_index: int, worker: Worker, metrics: MetricsPage) -> Mapping[str, Render]:
    return {
        "/metrics": metrics.page,
        "/progress": lambda _: _progress(worker_index, worker),
        "/healthz": lambda _: Page("text/plain; charset=utf-8", b"ok"),
    }


def _progress(worker_index: int, worker: Worker) -> Page:
    document = progress(worker_index, worker, monotonic())
    return Page("application/json", json.dumps(document, allow_nan=False).encode())
