"""/metrics, written ahead of the scrape: under a CPU limit a request has no time to spare."""

from collections.abc import Callable
from dataclasses import dataclass
from threading import Event, Lock
from time import monotonic

from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from kopeck_exporter.server import Page

AHEAD_SECONDS = 2.0
"""Between two pages: a scrape tells what was known so long ago, at most."""

FORGOTTEN_SECONDS = 120.0
"""A format that nobody asks for is no longer written ahead; the longest usual interval is 60 s."""


@dataclass(frozen=True, slots=True)
class _Written:
    body: bytes
    at_seconds: float


@dataclass(slots=True)
class _Format:
    """One that is asked for."""

    encode: Callable[[Collector], bytes]
    asked_at_seconds: float
    written: _Written | None = None


class MetricsPage:
    """In the formats that scrapers ask for. One thread writes ahead with `keep_ready`.

    What is not there, or too old because the thread does not keep up, is written when asked for.
    """

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._lock = Lock()
        self._formats: dict[str, _Format] = {}
        self._stopped = Event()

    def page(self, accept: str) -> Page:
        """For the value of an Accept header."""
        encode, content_type = choose_encoder(accept)
        now = monotonic()
        with self._lock:
            asked = self._formats.setdefault(content_type, _Format(encode, now))
            asked.asked_at_seconds = now
            written = asked.written
        if written is None or now - written.at_seconds > 2 * AHEAD_SECONDS:
            return Page(content_type, encode(self._collector))
        return Page(content_type, written.body)

    def keep_ready(self) -> None:
        """Until `stop`, from which on pages are of the moment they are asked for."""
        while not self._stopped.wait(AHEAD_SECONDS):
            self.write_ahead()

    def write_ahead(self) -> None:
        """The formats that are in use, once."""
        now = monotonic()
        with self._lock:
            self._formats = {
                content_type: each
                for content_type, each in self._formats.items()
                if now - each.asked_at_seconds < FORGOTTEN_SECONDS
            }
            used = list(self._formats.values())
        for each in used:
            written = _Written(each.encode(self._collector), now)
            with self._lock:
                if not self._stopped.is_set():
                    each.written = written

    def stop(self) -> None:
        with self._lock:
            self._stopped.set()
            self._formats.clear()
