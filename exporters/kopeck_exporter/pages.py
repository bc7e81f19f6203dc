"""What the exporter serves: /metrics, /progress, /healthz."""

import json
from collections.abc import Mapping
from time import monotonic

from prometheus_client.exposition import choose_encoder

from kopeck_exporter.collector import WorkerCollector
from kopeck_exporter.exposition import openmetrics_page, text_page
from kopeck_exporter.progress import progress
from kopeck_exporter.server import Page, Render
from kopeck_exporter.worker import Worker


def exporter_pages(
    worker_index: int, worker: Worker, collector: WorkerCollector
) -> Mapping[str, Render]:
    return {
        "/metrics": lambda accept: _metrics(collector, accept),
        "/progress": lambda _: _progress(worker_index, worker),
        "/healthz": lambda _: Page("text/plain; charset=utf-8", b"ok"),
    }


def _metrics(collector: WorkerCollector, accept: str) -> Page:
    _, content_type = choose_encoder(accept)
    is_openmetrics = content_type.startswith("application/openmetrics-text")
    write = openmetrics_page if is_openmetrics else text_page
    return Page(content_type, write(collector.collect()))


def _progress(worker_index: int, worker: Worker) -> Page:
    document = progress(worker_index, worker, monotonic())
    return Page("application/json", json.dumps(document, allow_nan=False).encode())
