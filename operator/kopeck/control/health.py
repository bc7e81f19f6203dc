"""Whether the operator works: its loop turns, the watch tells, no job waits for ever."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from kopeck.control.dirty_queue import DirtyQueue

_LONGEST_WAIT_SECONDS = 120.0
_LONGEST_LAG_SECONDS = 10.0
_BEAT_SECONDS = 1.0
_WATCH_DOWN_SECONDS = 120.0


@dataclass
class Health:
    """What /healthz answers by."""

    queue: DirtyQueue
    watch_is_sound: Callable[[], bool]
    _lag_seconds: float = 0.0
    _watch_seen_sound_at: float | None = None
    """None before the first sync, which may have to wait for the API server."""

    async def run(self) -> None:
        """Measure the loop's lag, once a second."""
        loop = asyncio.get_running_loop()
        self._watch_seen_sound_at = loop.time()
        while True:
            due = loop.time() + _BEAT_SECONDS
            await asyncio.sleep(_BEAT_SECONDS)
            self._lag_seconds = loop.time() - due
            if self.watch_is_sound():
                self._watch_seen_sound_at = loop.time()

    def what_is_wrong(self) -> str | None:
        """A sentence, or None while all is well."""
        if self._lag_seconds > _LONGEST_LAG_SECONDS:
            return f"the event loop lags {self._lag_seconds:.0f} s behind"
        if self.queue.oldest_age_seconds > _LONGEST_WAIT_SECONDS:
            return f"a job has waited {self.queue.oldest_age_seconds:.0f} s for its pass"
        if self._watch_seen_sound_at is None:
            return None
        silent = asyncio.get_running_loop().time() - self._watch_seen_sound_at
        if silent > _WATCH_DOWN_SECONDS:
            return f"the watch has been down or behind for {silent:.0f} s"
        return None
