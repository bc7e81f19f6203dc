"""kopf, embedded: it watches jobs and pods, and stores nothing on them.

It runs in a thread with an event loop of its own. At its exit kopf cancels every task of its loop
that is younger than itself; here those are only its own. It exits on what a watch cannot survive
(an in-stream 500, HTTP 404 and 410, half a line), and is started again with backoff.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import kopf
from kubernetes.aio.client import Configuration

from kopeck.api import names
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

    def __init__(self, configuration: Configuration, see_job: Seen, see_pod: Seen) -> None:
        self._configuration = configuration
        self._see_job = see_job
        self._see_pod = see_pod
        self.is_alive = False

    async def run(self) -> None:
        """Watch until cancelled; each other exit of kopf is followed by a new start."""
        loop = asyncio.get_running_loop()
        failures = 0
        while True:
            failures = await self._watch_once(loop, failures)

    async def _watch_once(self, loop: asyncio.AbstractEventLoop, failures: int) -> int:
        started = loop.time()
        stop = threading.Event()
        self.is_alive = True
        try:
            await asyncio.to_thread(self._watch_until_it_exits, loop, stop)
        except Exception as error:  # noqa: BLE001  whatever ends kopf, the operator goes on
            _log.warning("watch ended, starting again: %s: %s", type(error).__name__, error)
        finally:
            self.is_alive = False
            stop.set()
        failures = 1 if loop.time() - started > _SOUND_AFTER_SECONDS else failures + 1
        await asyncio.sleep(_BACKOFF_SECONDS[min(failures, len(_BACKOFF_SECONDS)) - 1])
        return failures

    def _watch_until_it_exits(self, loop: asyncio.AbstractEventLoop, stop: threading.Event) -> None:
        async def watch() -> None:
            try:
                await kopf.operator(
                    registry=self._registry(loop),
                    settings=_settings(),
                    clusterwide=True,
                    stop_flag=stop,
                )
            finally:
                # kopf waits for the flag in a thread, and no loop closes before its threads end.
                stop.set()

        asyncio.run(watch())

    def _registry(self, loop: asyncio.AbstractEventLoop) -> kopf.OperatorRegistry:
        registry = kopf.OperatorRegistry()

        @kopf.on.login(registry=registry)
        async def log_in(**_: Any) -> kopf.ConnectionInfo:
            return kopf_connection(self._configuration)

        @kopf.on.event(names.GROUP, names.VERSION, names.PLURAL, registry=registry)
        async def on_job(event: kopf.RawEvent, **_: Any) -> None:
            loop.call_soon_threadsafe(self._see_job, event["type"], event["object"])

        @kopf.on.event("", "v1", "pods", registry=registry)
        async def on_pod(event: kopf.RawEvent, **_: Any) -> None:
            loop.call_soon_threadsafe(self._see_pod, event["type"], event["object"])

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
