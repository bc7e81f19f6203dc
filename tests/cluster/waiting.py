"""Waiting for what a process was started for, and failing at once when it has died."""

from collections.abc import Callable, Sequence
from time import monotonic, sleep
from typing import TYPE_CHECKING

from tests.cluster.errors import ClusterError

if TYPE_CHECKING:
    from tests.cluster.processes import Process

POLL_SECONDS = 0.05


def wait_until(
    check: Callable[[], bool],
    what: str,
    *,
    seconds: float = 60,
    watched: Sequence["Process"] = (),
) -> None:
    """Return once `check` holds.

    Raises ClusterError after `seconds`, or as soon as one of the `watched` processes has ended.
    """
    deadline = monotonic() + seconds
    while not check():
        for process in watched:
            if not process.is_alive():
                raise ClusterError(f"{process.name} ended early: {process.log_tail()}")
        if monotonic() > deadline:
            logs = "".join(f"\n{process.name}: {process.log_tail()}" for process in watched)
            raise ClusterError(f"waited {seconds:.0f} s for {what} in vain{logs}")
        sleep(POLL_SECONDS)
