"""What the watches tell, taken into the cache; and fresh lists for what they leave out.

kopf sends no DELETED for what vanished while a watch was away: objects without an event type,
after the first sync, mean that it listed again. Where none is left, it tells nothing: so the
cluster is asked now and then whether it still has jobs.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from time import time
from typing import Any

from kopeck.api.job_key import JobKey
from kopeck.control.cache import Cache, is_our_pod
from kopeck.control.dirty_queue import DirtyQueue
from kopeck.control.staleness import Staleness
from kopeck.kube.cluster import Cluster
from kopeck.plan.job_view import JobView

_log = logging.getLogger("kopeck.sync")

RESYNC_SECONDS = 400.0
_ASK_SECONDS = 20.0
_RELIST_SETTLES_SECONDS = 2.0
_SPREAD_SECONDS_PER_JOB = 0.01
_LONGEST_SPREAD_SECONDS = 10.0
_WATCH_TELLS_WITHIN_SECONDS = 60.0


class Sync:
    """Keeps cache and queue true to the cluster."""

    def __init__(
        self,
        cluster: Cluster,
        cache: Cache,
        queue: DirtyQueue,
        clock: Callable[[], datetime],
        restart_watch: Callable[[], None],
    ) -> None:
        self._cluster = cluster
        self._cache = cache
        self._queue = queue
        self._clock = clock
        self._restart_watch = restart_watch
        self._staleness = Staleness()
        self._relisted = asyncio.Event()
        self.last_event_unix_seconds = time()
        self.pods_known_until = clock()
        """The last moment of which the pods are known: an event or a fresh list."""

    def see_job(self, kind: str | None, manifest: Mapping[str, Any]) -> None:
        """Take in a watch event of a TrainingJob."""
        self._note(kind)
        self._staleness.watch_told("jobs", manifest)
        key = JobView(manifest).key
        before = self._cache.job(key)
        if kind == "DELETED":
            self._cache.forget_job(key)
            self._queue.mark(key)
            return
        after = self._cache.see_job(manifest)
        if before is None or _asks_for_a_pass(before, after):
            self._queue.mark(key)

    def see_pod(self, kind: str | None, manifest: Mapping[str, Any]) -> None:
        """Take in a watch event of a pod."""
        self._note(kind)
        self._staleness.watch_told("pods", manifest)
        if not is_our_pod(manifest):
            return
        take_in = self._cache.forget_pod if kind == "DELETED" else self._cache.see_pod
        self._queue.mark(take_in(manifest, self._clock()))

    def watch_owes_nothing(self) -> bool:
        """Whether the watches have told all that the last lists showed."""
        return not self._staleness.untold()

    def known_uids(self) -> set[str]:
        return {job.key.uid for job in self._cache.jobs()}

    async def run(self) -> None:
        """List again after each relist of kopf, and every few minutes."""
        while True:
            try:
                await self._lists_are_due()
                self._relisted.clear()
                await self.list_everything()
            except Exception as error:  # noqa: BLE001  the next relist or resync tries again
                _log.warning("lists failed, trying again: %s", error)
                self._relisted.set()
            else:
                asyncio.get_running_loop().call_later(
                    _WATCH_TELLS_WITHIN_SECONDS, self._restart_a_stale_watch
                )

    async def _lists_are_due(self) -> None:
        loop = asyncio.get_running_loop()
        resync_at = loop.time() + RESYNC_SECONDS
        while loop.time() < resync_at:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._relisted.wait(), _ASK_SECONDS)
            if self._relisted.is_set():
                await asyncio.sleep(_RELIST_SETTLES_SECONDS)
                return
            if self._cache.jobs() and not await self._cluster.has_jobs():
                return
        _log.debug("resync")

    def _restart_a_stale_watch(self) -> None:
        if untold := self._staleness.untold():
            _log.warning(
                "the watch does not tell of all %s, starting it again", " and ".join(untold)
            )
            self._restart_watch()

    async def list_everything(self, *, finished_too: bool = False) -> None:
        """Make fresh lists the truth, and mark every job that is not finished."""
        listed_at = self._clock()
        self._staleness.begin_lists()
        jobs, resource_version = await self._cluster.all_jobs()
        listed = {self._cache.see_job(job).key for job in jobs}
        self._staleness.list_showed("jobs", jobs)
        pod_uids: set[str] = set()
        async for pods, _ in self._cluster.all_pods():
            self._staleness.list_showed("pods", pods)
            ours = [pod for pod in pods if is_our_pod(pod)]
            for pod in ours:
                self._cache.see_pod(pod, self._clock())
            pod_uids |= {pod["metadata"]["uid"] for pod in ours}
        self.pods_known_until = listed_at
        concerned = self._cache.drop_vanished(listed, pod_uids, resource_version)
        unfinished = {job.key for job in self._cache.jobs() if finished_too or not job.is_finished}
        self._mark_spread(concerned | unfinished)

    def _mark_spread(self, keys: set[JobKey]) -> None:
        spread = min(len(keys) * _SPREAD_SECONDS_PER_JOB, _LONGEST_SPREAD_SECONDS)
        for index, key in enumerate(keys):
            self._queue.mark(key, after_seconds=spread * index / len(keys))

    def _note(self, kind: str | None) -> None:
        self.last_event_unix_seconds = time()
        self.pods_known_until = self._clock()
        if kind is None:
            self._relisted.set()


def _asks_for_a_pass(before: JobView, after: JobView) -> bool:
    """Our own status writes come back as events too, and ask for nothing."""
    return _asked(before) != _asked(after)


def _asked(job: JobView) -> tuple[int, bool, str | None]:
    return job.generation, job.is_deleting, job.checkpoint_request
