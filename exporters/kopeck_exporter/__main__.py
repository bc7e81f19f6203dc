"""`python3 -m kopeck_exporter`: the sidecar of a worker."""

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
from kopeck_exporter.errors import ErrorCounts
from kopeck_exporter.listener import ReportListener
from kopeck_exporter.pages import exporter_pages
from kopeck_exporter.server import PageServer, Render
from kopeck_exporter.worker import Worker

LAST_SCRAPE_SECONDS = 1.5  # the kubelet kills a sidecar 2 s after SIGTERM
ENDING_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def main() -> int:
    # Blocked and waited for, not handled: the first process of a container would lose a signal
    # that has no handler yet, and a handler may run while its thread holds the lock it needs.
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING_SIGNALS)
    try:
        server = _start(read_configuration(os.environ))
    except ConfigurationError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    signal.sigwait(ENDING_SIGNALS)
    server.scraped.clear()
    server.scraped.wait(LAST_SCRAPE_SECONDS)
    return 0


def _start(configuration: Configuration) -> PageServer:
    """Listens to ranks and serves pages in threads that end with the process."""
    errors = ErrorCounts()
    worker = Worker(configuration.processes)
    collector = WorkerCollector(configuration, worker, errors)
    pages = exporter_pages(configuration.worker, worker, collector)
    listener = _listener(configuration.socket, worker, errors)
    server = _server(configuration.port, pages)
    for serve in (listener.serve_until_stopped, server.serve_until_shutdown):
        Thread(target=serve, daemon=True).start()
    sys.stderr.write(f"listening on port {server.port} and at {configuration.socket}\n")
    return server


def _listener(path: Path, worker: Worker, errors: ErrorCounts) -> ReportListener:
    try:
        return ReportListener(path, worker.receive, errors)
    except OSError as error:
        wrong = f"KOPECK_SOCKET: cannot listen at {path} ({error.strerror or error})"
        raise ConfigurationError(f"{wrong}; use a path in a writable folder") from error


def _server(port: int, pages: Mapping[str, Render]) -> PageServer:
    try:
        return PageServer(port, pages)
    except OSError as error:
        wrong = f"KOPECK_EXPORTER_PORT: cannot listen on {port} ({error.strerror or error})"
        raise ConfigurationError(f"{wrong}; use a free port") from error


if __name__ == "__main__":
    sys.exit(main())
