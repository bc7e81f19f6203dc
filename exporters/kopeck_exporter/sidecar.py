"""The sidecar of a worker: from its start to its last scrape."""

import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from threading import Thread

from kopeck_exporter.collector import WorkerCollector
from kopeck_exporter.configuration import (
    Configuration,
    ConfigurationError,
    read_configuration,
)
from kopeck_exporter.dcgm import Dcgm
from kopeck_exporter.devices import Devices
from kopeck_exporter.errors import ErrorCounts
from kopeck_exporter.inbox import inbox
from kopeck_exporter.listener import Receive, ReportListener
from kopeck_exporter.metrics_page import MetricsPage
from kopeck_exporter.pages import exporter_pages
from kopeck_exporter.server import PageServer, Render
from kopeck_exporter.signals import ENDING_SIGNALS
from kopeck_exporter.worker import Worker

LAST_SCRAPE_SECONDS = 1.5  # the kubelet kills a sidecar 2 s after SIGTERM
SWITCH_SECONDS = 0.0005
"""For which a thread that writes pages or reads reports may hold up each step of an answer. With
Python's own 5 ms one scrape in a hundred took 25."""


def main() -> int:
    """The exit code. Ending signals are blocked."""
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        listener, server, metrics = _start(read_configuration(os.environ))
    except ConfigurationError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    signal.sigwait(ENDING_SIGNALS)
    listener.hurry()
    metrics.stop()
    server.next_scrape().wait(LAST_SCRAPE_SECONDS)
    return 0


def _start(configuration: Configuration) -> tuple[ReportListener, PageServer, MetricsPage]:
    """Listens to ranks and serves pages in threads that end with the process."""
    errors = ErrorCounts()
    dcgm = Dcgm(configuration.dcgm_endpoint, errors) if configuration.dcgm_endpoint else None
    worker, devices = Worker(configuration.processes), Devices(dcgm)
    metrics = MetricsPage(WorkerCollector(configuration, worker, devices, errors))
    pages = exporter_pages(configuration.worker, worker, metrics)
    listener = _listener(configuration.socket, inbox(worker, devices), errors)
    server = _server(configuration.port, pages)
    threads = [listener.serve_until_stopped, server.serve_until_shutdown, metrics.keep_ready]
    if dcgm:
        threads.append(dcgm.ask_for_ever)
    for serve in threads:
        Thread(target=serve, daemon=True).start()
    if configuration.samples_gpus:
        _start_sampler()
    sys.stderr.write(f"listening on port {server.port} and at {configuration.socket}\n")
    return listener, server, metrics


def _start_sampler() -> None:
    """A process of its own, which may hang in a call to the driver: nobody waits for it."""
    command = [sys.executable, "-m", "kopeck_exporter.sampler", "sidecar"]
    os.posix_spawn(command[0], command, os.environ, setpgroup=0, setsigmask=[])


def _listener(path: Path, receive: Receive, errors: ErrorCounts) -> ReportListener:
    try:
        return ReportListener(path, receive, errors)
    except OSError as error:
        wrong = f"KOPECK_SOCKET: cannot listen at {path} ({error.strerror or error})"
        raise ConfigurationError(f"{wrong}; use a path in a writable folder") from error


def _server(port: int, pages: Mapping[str, Render]) -> PageServer:
    try:
        return PageServer(port, pages)
    except OSError as error:
        wrong = f"KOPECK_EXPORTER_PORT: cannot listen on {port} ({error.strerror or error})"
        raise ConfigurationError(f"{wrong}; use a free port") from error
