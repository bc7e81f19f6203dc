"""Builders of rank reports, and a sidecar that runs in the test's own process."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread
from typing import Any, Self

from prometheus_client.parser import text_string_to_metric_families

from kopeck_exporter.collector import WorkerCollector
from kopeck_exporter.configuration import Configuration
from kopeck_exporter.device import THROTTLE_REASONS
from kopeck_exporter.devices import Devices
from kopeck_exporter.errors import ErrorCounts
from kopeck_exporter.inbox import inbox
from kopeck_exporter.listener import ReportListener
from kopeck_exporter.metrics_page import MetricsPage
from kopeck_exporter.names import PHASES, STEP_JITTER_SECONDS_BUCKETS, STEP_SECONDS_BUCKETS
from kopeck_exporter.pages import exporter_pages
from kopeck_exporter.server import REQUEST_SECONDS, PageServer
from kopeck_exporter.worker import Worker

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


A_DECISION = {
    "mode": "reduce-overhead",
    "why": "compile mode reduce-overhead for 1000 steps",
    "trials": [
        {"mode": "default", "compile_seconds": 30.0, "step_seconds": 0.27},
        {"mode": "reduce-overhead", "compile_seconds": 40.0, "step_seconds": 0.2},
    ],
    "break_even_steps": 143.0,
}


def a_message(**facts: Any) -> dict[str, Any]:
    """The message of a rank after its first step; `facts` replace fields, None removes one."""
    rank = facts.get("rank", 0)
    message = {
        "v": 1,
        "rank": rank,
        "local_rank": rank,
        "world_size": 2,
        "seq": 1,
        "time": 1_800_000_000.5,
        "step": 1,
        "samples": 8,
        "job_samples": 16,
        "loss": 2.5,
        "step_seconds": 0.41,
        "samples_per_second": 19.5,
        "mfu": 0.5,
        "step_bucket_counts": steps_of(0.41),
        "step_seconds_sum": 0.41,
        "steady_step_seconds": 0.4,
        "jitter_bucket_counts": [3, *[0] * (len(STEP_JITTER_SECONDS_BUCKETS) - 1), 1],
        "jitter_seconds_sum": 7.5,
        "phase_seconds": dict.fromkeys(PHASES, 1.0),
        "step_part_seconds": {"forward_backward": 0.3, "optimizer": 0.1, "other": 0.01},
        "compile_mode": "default",
        "compile_seconds": 3.0,
        "graph_breaks": 1,
        "recompiles": 2,
        "recompile_reasons": {"shape": 1, "other": 1},
        "eager_fallbacks": 3,
        "compile_cache_hits": 4,
        "compile_cache_misses": 5,
        "cudagraph_skips": 6,
        "nonfinite_losses": 7,
        "loss_spikes": 8,
        "checkpoint_step": None,
    }
    return {name: value for name, value in (message | facts).items() if value is not None}


def a_gpu_message(index: int = 0, **facts: Any) -> dict[str, Any]:
    """One GPU in a sampler's message; `facts` replace fields, None removes one."""
    gpu = {
        "gpu": index,
        "uuid": f"GPU-{index}",
        "model": "NVIDIA H200",
        "sm_utilization_ratio": 0.965,
        "sm_occupancy_ratio": 0.142,
        "tensor_active_ratio": 0.937,
        "dram_active_ratio": 0.31,
        "gpu_utilization_ratio": 1.0,
        "sm_clock_hertz": 1.62e9,
        "memory_used_bytes": 9e10,
        "power_watts": 693.0,
        "temperature_celsius": 61.0,
        "energy_joules": 5000.0,
        "throttled_seconds": dict.fromkeys(THROTTLE_REASONS, 1.5),
        "nvlink_bytes": {"received": 10.0, "sent": 20.0},
        "pcie_bytes": {"received": 1.0, "sent": 2.0},
        "xids": {"31": 2},
    }
    return {name: value for name, value in (gpu | facts).items() if value is not None}


def a_sampler_message(**facts: Any) -> dict[str, Any]:
    """Of a sampler in a training container with two GPUs; likewise."""
    message = {
        "v": 1,
        "kind": "sampler",
        "origin": "trainer",
        "seq": 1,
        "time": 1_800_000_000.5,
        "gpus": [a_gpu_message(0), a_gpu_message(1)],
        "cpu": {"periods": 400, "throttled_periods": 100, "throttled_seconds": 2.5},
        "errors": {"nvml": {"hung": 1}},
    }
    return {name: value for name, value in (message | facts).items() if value is not None}


A_WINDOW = {
    "time": 1_800_000_000.0,
    "comm_ratio": 0.4,
    "exposed_ratio": 0.1,
    "wait_ratio": 0.05,
    "overlap_ratio": 0.75,
}


def steps_of(*seconds: float) -> list[int]:
    """The bucket counts of a rank whose steps took so long."""
    counts = [0] * (len(STEP_SECONDS_BUCKETS) + 1)
    for each in seconds:
        counts[sum(bound < each for bound in STEP_SECONDS_BUCKETS)] += 1
    return counts


class Sender:
    """A rank's end of the socket."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.connect()

    def connect(self) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(10)
        self.socket.connect(str(self.path))

    def reconnect(self) -> None:
        self.socket.close()
        self.connect()

    def send(self, **facts: Any) -> None:
        self.send_message(a_message(**facts))

    def send_message(self, message: dict[str, Any]) -> None:
        self.send_bytes(json.dumps(message).encode())

    def send_bytes(self, data: bytes) -> None:
        self.socket.send(data)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()


@dataclass
class Answer:
    status: int
    content_type: str
    text: str


def get(port: int, path: str, accept: str = "text/plain") -> Answer:
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path, headers={"Accept": accept})
        response = connection.getresponse()
        content_type = response.getheader("Content-Type", "")
        return Answer(response.status, content_type, response.read().decode())
    finally:
        connection.close()


def samples_of(text: str) -> Samples:
    """By name and labels, without the two labels that every worker metric has."""
    return {
        (
            each.name,
            frozenset(each.labels.items() - {("training_job", "llama"), ("worker", "3")}),
        ): (each.value)
        for family in text_string_to_metric_families(text)
        for each in family.samples
    }


@dataclass
class Sidecar:
    """An exporter of job llama's attempt 2, worker 3."""

    socket: Path
    podinfo: Path
    port: int
    worker: Worker

    def samples(self) -> Samples:
        return samples_of(get(self.port, "/metrics").text)

    def value(self, name: str, **labels: str) -> float | None:
        return self.samples().get((name, frozenset(labels.items())))

    def progress(self) -> dict[str, Any]:
        document = json.loads(get(self.port, "/progress").text)
        assert isinstance(document, dict)
        return document


@contextmanager
def running_sidecar(
    folder: Path, processes: int = 1, *, request_seconds: float = REQUEST_SECONDS
) -> Iterator[Sidecar]:
    path, podinfo = folder / "telemetry.sock", folder / "annotations"
    configuration = Configuration(
        job="llama",
        worker=3,
        attempt=2,
        processes=processes,
        socket=path,
        podinfo=podinfo,
        port=0,
    )
    errors, worker, devices = ErrorCounts(), Worker(processes), Devices()
    collector = WorkerCollector(configuration, worker, devices, errors)
    listener = ReportListener(path, inbox(worker, devices), errors, round_seconds=0.001)
    server = PageServer(0, exporter_pages(3, worker, MetricsPage(collector)), request_seconds)
    threads = [
        Thread(target=listener.serve_until_stopped),
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}),
    ]
    for thread in threads:
        thread.start()
    try:
        yield Sidecar(path, podinfo, server.port, worker)
    finally:
        listener.stop()
        server.shutdown()
        for thread in threads:
            thread.join()
        server.server_close()
