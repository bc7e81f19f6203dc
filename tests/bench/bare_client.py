"""`python -m tests.bench.bare_client SERIES`: prometheus_client alone, with so many gauges.

First on standard output: its port.
"""

import signal
import sys

from prometheus_client import CollectorRegistry, Gauge, start_http_server

_PER_METRIC = 8


def main() -> int:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    registry = CollectorRegistry()
    _gauges(registry, int(sys.argv[1]))
    server, _ = start_http_server(0, "127.0.0.1", registry)
    print(server.server_port, flush=True)
    signal.sigwait([signal.SIGTERM])
    return 0


def _gauges(registry: CollectorRegistry, series: int) -> None:
    """Labelled as ours are."""
    labels = ("training_job", "worker", "gpu", "uuid")
    for first in range(0, series, _PER_METRIC):
        gauge = Gauge(f"bare_metric_{first}", "A gauge.", labels, registry=registry)
        for each in range(min(_PER_METRIC, series - first)):
            gauge.labels("llama", "3", str(each), f"GPU-{each}").set(0.965)


if __name__ == "__main__":
    sys.exit(main())
