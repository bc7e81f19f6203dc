"""An event loop whose clock stands still while work is done, and jumps when all wait."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")

START_SECONDS = 1000.0
# Timers fire when they are as near as this: if no time passed at all, one that is due in less
# would be set anew for ever.
_TICK_SECONDS = 1e-9


class _SimulatedLoop(asyncio.SelectorEventLoop):
    """Where a real loop would wait for its next timer, this one sets its clock to it."""

    def __init__(self) -> None:
        super().__init__(_NeverWaits())
        self.now_seconds = START_SECONDS

    def time(self) -> float:
        return self.now_seconds


class _NeverWaits(selectors.SelectSelector):
    """Tells the loop to go on at once; the time that it would have waited has passed."""

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            raise AssertionError("everything waits, and no timer will end it")
        loop = asyncio.get_running_loop()
        assert isinstance(loop, _SimulatedLoop)
        loop.now_seconds += max(timeout, _TICK_SECONDS)
        return super().select(0)


def run_simulated(main: Coroutine[Any, Any, Result]) -> Result:
    """What `main` returns, on simulated time."""
    with asyncio.Runner(loop_factory=_SimulatedLoop) as runner:
        return runner.run(main)
