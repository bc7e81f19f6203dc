"""The process that reads GPUs and CPU throttling in this container, for the exporter.

It may hang in a call to the driver so that no signal ends it: it is told to end, never waited for.
"""

import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

PROGRAM = [sys.executable, "-m", "kopeck_exporter.sampler", "trainer"]


@contextmanager
def sampling(environ: Mapping[str, str]) -> Iterator[None]:
    """Sample while the block runs; without an exporter there is nobody to tell.

    A sampler that does not start costs its figures and nothing else.
    """
    process = _started(environ) if environ.get("KOPECK_SOCKET") else None
    try:
        yield
    finally:
        if process is not None:
            _end(process)


def _started(environ: Mapping[str, str]) -> int | None:
    """A handle of the process, which stays right when its number is given to another."""
    try:
        pid = os.posix_spawn(
            PROGRAM[0], PROGRAM, environ, setpgroup=0, setsigmask=[], setsigdef=[signal.SIGPIPE]
        )
        return os.pidfd_open(pid)
    except OSError:
        return None


def _end(process: int) -> None:
    try:
        signal.pidfd_send_signal(process, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        os.close(process)
