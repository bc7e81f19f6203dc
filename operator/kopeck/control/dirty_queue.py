"""The jobs that need a pass, and when: the first event at once, then at most a few a second."""

import asyncio
import heapq

from kopeck.api.job_key import JobKey

# Bursts of pod events become one pass.
_MINIMUM_SECONDS_BETWEEN_PASSES = 0.15


class DirtyQueue:
    """A queue in which each job waits once, and is worked on by one worker at a time.

    Times are those of the running event loop, in seconds.
    """

    def __init__(self) -> None:
        self._due: dict[JobKey, float] = {}
        self._heap: list[tuple[float, JobKey]] = []
        self._running: set[JobKey] = set()
        self._last_pass: dict[JobKey, float] = {}
        """Ends of passes, oldest first, as long as they hold a next one back."""
        self._changed = asyncio.Event()

    def mark(self, key: JobKey, after_seconds: float = 0.0) -> None:
        """Ask for a pass in so many seconds, or sooner if that was asked before."""
        due = asyncio.get_running_loop().time() + after_seconds
        if self._due.get(key, float("inf")) <= due:
            return
        self._due[key] = due
        heapq.heappush(self._heap, (due, key))
        self._changed.set()

    async def take(self) -> JobKey:
        """The next job that is due; no other worker gets it before `done`."""
        while True:
            self._changed.clear()
            key, wait_seconds = self._pop_due()
            if key is not None:
                return key
            try:
                await asyncio.wait_for(self._changed.wait(), wait_seconds)
            except TimeoutError:
                continue

    def done(self, key: JobKey) -> None:
        """Let the job be taken again."""
        now = asyncio.get_running_loop().time()
        self._running.discard(key)
        self._last_pass.pop(key, None)
        self._last_pass[key] = now
        self._forget_passes_until(now - _MINIMUM_SECONDS_BETWEEN_PASSES)
        self._changed.set()

    @property
    def depth(self) -> int:
        """Jobs whose time has come and that no worker has taken."""
        now = asyncio.get_running_loop().time()
        return sum(due <= now for due in self._due.values())

    @property
    def oldest_age_seconds(self) -> float:
        """How long the longest waiting job has been due."""
        now = asyncio.get_running_loop().time()
        return max((now - due for due in self._due.values()), default=0.0)

    def _forget_passes_until(self, end: float) -> None:
        """Jobs come and go: what is kept of one that is not due must end by itself."""
        while self._last_pass[oldest := next(iter(self._last_pass))] <= end:
            del self._last_pass[oldest]

    def _pop_due(self) -> tuple[JobKey | None, float | None]:
        """A job to work on, or how long until one may be; None is until something changes."""
        now = asyncio.get_running_loop().time()
        postponed: list[tuple[float, JobKey]] = []
        found: JobKey | None = None
        while self._heap and self._heap[0][0] <= now and found is None:
            due, key = heapq.heappop(self._heap)
            if self._due.get(key) != due:
                continue
            earliest = self._last_pass.get(key, 0.0) + _MINIMUM_SECONDS_BETWEEN_PASSES
            if key in self._running:
                postponed.append((now + _MINIMUM_SECONDS_BETWEEN_PASSES, key))
            elif now < earliest:
                postponed.append((earliest, key))
            else:
                found = key
        for due, key in postponed:
            self._due[key] = due
            heapq.heappush(self._heap, (due, key))
        if found is None:
            return None, max(self._heap[0][0] - now, 0.0) if self._heap else None
        del self._due[found]
        self._running.add(found)
        return found, None
