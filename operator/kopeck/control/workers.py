"""The pool that works through the queue."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from prometheus_client import Histogram

from kopeck.api.job_key import JobKey
from kopeck.control.cache import Cache
from kopeck.control.dirty_queue import DirtyQueue
from kopeck.kube.errors import AlreadyExistsError, ApiError, ConflictError

_log = logging.getLogger("kopeck.workers")

WORKERS = 8
_LONGEST_BACKOFF_SECONDS = 60.0


class Workers:
    """Passes, one per job at a time; a pass that fails is repeated with backoff."""

    def __init__(
        self,
        reconcile: Callable[[JobKey], Awaitable[float | None]],
        read_job: Callable[[JobKey], Awaitable[Mapping[str, Any] | None]],
        queue: DirtyQueue,
        cache: Cache,
        pass_seconds: Histogram,
    ) -> None:
        """`reconcile` is one pass over a job: the seconds until it is due again, if it is."""
        self._reconcile = reconcile
        self._read_job = read_job
        self._queue = queue
        self._cache = cache
        self._pass_seconds = pass_seconds
        self._failures: dict[JobKey, int] = {}

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(WORKERS):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            key = await self._queue.take()
            try:
                due_in_seconds = await self._pass(key)
            finally:
                self._queue.done(key)
            if due_in_seconds is not None:
                self._queue.mark(key, due_in_seconds)

    async def _pass(self, key: JobKey) -> float | None:
        try:
            with self._pass_seconds.time():
                due_in_seconds = await self._reconcile(key)
        except (ConflictError, AlreadyExistsError):
            return await self._read_again(key)
        except Exception as error:  # noqa: BLE001  one job's trouble must not stop the others
            return self._backoff_seconds(key, error)
        self._failures.pop(key, None)
        return due_in_seconds

    async def _read_again(self, key: JobKey) -> float:
        """Another writer was first: plan again from what it wrote."""
        try:
            manifest = await self._read_job(key)
        except Exception as error:  # noqa: BLE001  as in a pass
            return self._backoff_seconds(key, error)
        if manifest is None:
            self._cache.forget_job(key)
        else:
            self._cache.see_job(manifest)
        return 0.0

    def _backoff_seconds(self, key: JobKey, error: Exception) -> float:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        seconds: float = min(0.5 * 2.0**failures, _LONGEST_BACKOFF_SECONDS)
        is_ours = not isinstance(error, (ApiError, OSError, TimeoutError))
        _log.error("job=%s pass failed, again in %.0f s: %s", key, seconds, error, exc_info=is_ours)
        return seconds
