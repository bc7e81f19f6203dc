"""Whether the operator works: its loop turns, kopf lives, no job waits for ever."""

import asyncio
from dataclasses import dataclass

from kopeck.control.dirty_queue import DirtyQueue
from kopeck.control.watch import Watch

_LONGEST_WAIT_SECONDS = 120.0
_LONGEST_LAG_SECONDS = 10.0
_BEAT_SECONDS = 1.0
_WATCH_DOWN_SECONDS = 120.0


@dataclass
class Health:
    """What /healthz answers by."""

    queue: DirtyQueue
    watch: Watch
    _lag_seconds: float = 0.0
    _watch_seen_alive_at: float = 0.0

    async def run(self) -> None:
        """Measure the loop's lag, once a second."""
        loop = asyncio.get_running_loop()
        self._watch_seen_alive_at = loop.time()
        while True:
            due = loop.time() + _BEAT_SECONDS
            await asyncio.sleep(_BEAT_SECONDS)
            self._lag_seconds = loop.time() - due
            if self.watch.is_alive:
                self._watch_seen_alive_at = loop.time()

    def what_is_wrong(self) -> str | None:
        """A sentence, or None while all is well."""
        if self._lag_seconds > _LONGEST_LAG_SECONDS:
            return f"the event loop lags {self._lag_seconds:.0f} s behind"
        if self.queue.oldest_age_seconds > _LONGEST_WAIT_SECONDS:
            return f"a job has waited {self.queue.oldest_age_seconds:.0f} s for its pass"
        down = asyncio.get_running_loop().time() - self._watch_seen_alive_at
        if down > _WATCH_DOWN_SECONDS:
            return f"the watch has been down for {down:.0f} s"
        return None
