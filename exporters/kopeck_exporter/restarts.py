"""The sampler's work in a process of its own, begun again when that dies."""

import os
import signal
from collections.abc import Callable
from multiprocessing.context import ForkProcess
from time import monotonic, sleep

LOOK_SECONDS = 1.0
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 300.0
"""Before it is begun again: each pause is twice as long as the one before."""


def begun_again(work: Callable[[int], None], say: Callable[[str], None]) -> None:
    """Until the process that started this one is gone; `work` has to notice that by itself.

    `work` is given how many died before it.
    """
    starter = os.getppid()
    deaths, pause_seconds = 0, FIRST_PAUSE_SECONDS
    while os.getppid() == starter:
        process = ForkProcess(target=work, args=(deaths,))
        process.start()
        while process.exitcode is None:
            if os.getppid() != starter:
                return
            process.join(LOOK_SECONDS)
        deaths += 1
        say(f"the sampler {_end(process.exitcode)}, and begins again in {pause_seconds:.0f} s")
        _pause(pause_seconds, starter)
        pause_seconds = min(2 * pause_seconds, LONGEST_PAUSE_SECONDS)


def _pause(seconds: float, starter: int) -> None:
    until = monotonic() + seconds
    while (left := until - monotonic()) > 0 and os.getppid() == starter:
        sleep(min(left, LOOK_SECONDS))


def _end(exit_code: int) -> str:
    if exit_code >= 0:
        return f"ended with code {exit_code}"
    try:
        return f"was killed by {signal.Signals(-exit_code).name}"
    except ValueError:  # most real-time signals have no name
        return f"was killed by signal {-exit_code}"
