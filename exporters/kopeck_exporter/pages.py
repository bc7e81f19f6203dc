"""What the exporter serves: /metrics, /progress, /healthz."""

import json
from collections.abc import Mapping
from time import monotonic

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from kopeck_exporter.collector import WorkerCollector
from kopeck_exporter.progress import progress
from kopeck_exporter.server import Page, Render
from kopeck_exporter.worker import Worker


def exporter_pages(
    worker_index: int, worker: Worker, collector: WorkerCollector
) -> Mapping[str, Render]:
    registry = CollectorRegistry()
    registry.register(collector)
    return {
        "/metrics": lambda accept: _metrics(registry, accept),
        "/progress": lambda _: _progress(worker_index, worker),
        "/healthz": lambda _: Page("text/plain; charset=utf-8", b"ok"),
    }


def _metrics(registry: CollectorRegistry, accept: str) -> Page:
    encode, content_type = choose_encoder(accept)
    return Page(content_type, encode(registry))


def _progress(worker_index: int, worker: Worker) -> Page:
    document = progress(worker_index, worker, monotonic())
    return Page("application/json", json.dumps(document, allow_nan=False).encode())
