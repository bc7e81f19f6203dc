"""kopf, embedded: it watches jobs and pods, and stores nothing on them.

It exits on what a watch cannot survive (an in-stream 500, HTTP 401, 404 and 410, half a line), and
is started again with backoff.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import kopf
from kubernetes.aio.client import Configuration

from kopeck.api import names
from kopeck.control.kopf_thread import run_kopf
from kopeck.kube.connection import kopf_connection

_log = logging.getLogger("kopeck.watch")

Seen = Callable[[str | None, Mapping[str, Any]], None]
"""Told the type of a watch event, None for what a list holds, and the object."""

_BACKOFF_SECONDS = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
_SOUND_AFTER_SECONDS = 60.0


class _NothingStored(kopf.DiffBaseStorage):
    """No difference is asked for: copying every body for one costs a millisecond an event."""

    def build(self, **_: Any) -> kopf.BodyEssence:
        return kopf.BodyEssence({})

    def fetch(self, **_: Any) -> kopf.BodyEssence | None:
        return None

    def store(self, **_: Any) -> None:
        return None


class _Endless(Collection[float]):
    """Backoffs that never end: kopf exits when they do."""

    def __iter__(self) -> Iterator[float]:
        yield from _BACKOFF_SECONDS
        while True:
            yield _BACKOFF_SECONDS[-1]

    def __contains__(self, item: object) -> bool:
        return item in _BACKOFF_SECONDS

    def __len__(self) -> int:
        return len(_BACKOFF_SECONDS)


class Watch:
    """The watches on TrainingJobs and on the pods of ours."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._stop = threading.Event()
        self.is_alive = False

    def restart(self) -> None:
        """End kopf as it is now; run() starts it again."""
        self._stop.set()

    async def run(self, see_job: Seen, see_pod: Seen) -> None:
        """Watch until cancelled; each other exit of kopf is followed by a new start."""
        loop = asyncio.get_running_loop()
        failures = 0
        while True:
            started = loop.time()
            await self._watch_once(see_job, see_pod)
            failures = 1 if loop.time() - started > _SOUND_AFTER_SECONDS else failures + 1
            await asyncio.sleep(_BACKOFF_SECONDS[min(failures, len(_BACKOFF_SECONDS)) - 1])

    async def _watch_once(self, see_job: Seen, see_pod: Seen) -> None:
        self._stop = stop = threading.Event()
        self.is_alive = True
        try:
            await run_kopf(self._registry(see_job, see_pod, stop), _settings(), stop)
        except Exception as error:  # noqa: BLE001  whatever ends kopf, the operator goes on
            _log.warning("watch ended, starting again: %s: %s", type(error).__name__, error)
        finally:
            self.is_alive = False

    def _registry(
        self, see_job: Seen, see_pod: Seen, stop: threading.Event
    ) -> kopf.OperatorRegistry:
        loop = asyncio.get_running_loop()
        registry = kopf.OperatorRegistry()

        def pass_on(seen: Seen, event: kopf.RawEvent) -> None:
            # What was left behind may still watch, and is behind what came after it.
            if not stop.is_set():
                loop.call_soon_threadsafe(seen, event["type"], event["object"])

        @kopf.on.login(registry=registry)
        async def log_in(**_: Any) -> kopf.ConnectionInfo:
            return await kopf_connection(self._configuration)

        @kopf.on.event(names.GROUP, names.VERSION, names.PLURAL, registry=registry)
        async def on_job(event: kopf.RawEvent, **_: Any) -> None:
            pass_on(see_job, event)

        @kopf.on.event("", "v1", "pods", registry=registry)
        async def on_pod(event: kopf.RawEvent, **_: Any) -> None:
            pass_on(see_pod, event)

        return registry


def _settings() -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.peering.standalone = True
    settings.scanning.disabled = True
    settings.posting.enabled = False
    settings.networking.request_timeout = 30.0
    settings.networking.error_backoffs = _Endless()
    # Otherwise kopf kills the process so long after its first exit.
    settings.process.ultimate_exiting_timeout = None
    settings.queueing.idle_timeout = 0.2
    settings.watching.label_selectors["", "v1", "pods"] = names.LABEL_JOB
    settings.watching.chunk_size = 500
    # kopf removes its own finalizer from what it watches: the default is other operators' too.
    settings.persistence.finalizer = f"{names.GROUP}/unused"
    settings.persistence.diffbase_storage = _NothingStored()
    return settings
