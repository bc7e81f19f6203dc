"""The one place where tests wait: for a condition, with a deadline that only a hang reaches."""

from collections.abc import Callable
from contextlib import suppress
from time import monotonic, sleep
from typing import TypeVar

Result = TypeVar("Result")

DEADLINE_SECONDS = 120.0


def eventually(check: Callable[[], Result], *, seconds: float = DEADLINE_SECONDS) -> Result:
    """What `check` returns once it raises no AssertionError; its last one after `seconds`."""
    deadline = monotonic() + seconds
    while monotonic() < deadline:
        with suppress(AssertionError):
            return check()
        sleep(0.05)
    return check()
