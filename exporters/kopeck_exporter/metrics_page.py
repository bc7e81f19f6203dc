"""/metrics, written ahead of the scrape: under a CPU limit a request has no time to spare."""

from dataclasses import dataclass
from threading import Event, Lock
from time import monotonic

from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from kopeck_exporter.exposition import openmetrics_page, text_page
from kopeck_exporter.server import Page

AHEAD_SECONDS = 2.0
"""Between two pages: a scrape tells what was known so long ago, at most."""

FORGOTTEN_SECONDS = 120.0
"""A format that nobody asks for is no longer written ahead; the longest usual interval is 60 s."""


@dataclass(frozen=True, slots=True)
class _Written:
    body: bytes
    at_seconds: float


class MetricsPage:
    """In both formats. One thread writes ahead with `keep_ready`, others ask for pages.

    What is not there, or too old because the thread does not keep up, is written when asked for.
    """

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._lock = Lock()
        self._written: dict[bool, _Written] = {}
        self._asked_at: dict[bool, float] = {}
        self._stopped = Event()

    def page(self, accept: str) -> Page:
        """For the value of an Accept header."""
        _, content_type = choose_encoder(accept)
        is_openmetrics = content_type.startswith("application/openmetrics-text")
        now = monotonic()
        with self._lock:
            self._asked_at[is_openmetrics] = now
            written = self._written.get(is_openmetrics)
        if written is None or now - written.at_seconds > 2 * AHEAD_SECONDS:
            return Page(content_type, self._write(is_openmetrics=is_openmetrics))
        return Page(content_type, written.body)

    def keep_ready(self) -> None:
        """Until `stop`, from which on pages are of the moment they are asked for."""
        while not self._stopped.wait(AHEAD_SECONDS):
            self.write_ahead()

    def write_ahead(self) -> None:
        """The formats that are in use, once."""
        now = monotonic()
        with self._lock:
            used = [each for each, at in self._asked_at.items() if now - at < FORGOTTEN_SECONDS]
        for is_openmetrics in used:
            written = _Written(self._write(is_openmetrics=is_openmetrics), now)
            with self._lock:
                if not self._stopped.is_set():
                    self._written[is_openmetrics] = written

    def stop(self) -> None:
        with self._lock:
            self._stopped.set()
            self._written.clear()

    def _write(self, *, is_openmetrics: bool) -> bytes:
        write = openmetrics_page if is_openmetrics else text_page
        return write(self._collector.collect())
