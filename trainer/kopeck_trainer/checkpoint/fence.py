"""Keeps an older attempt, which may still run on a node that was cut off, from committing."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kopeck_trainer.errors import AttemptReplacedError

NAME = "fence"


def raise_fence(folder: Path, attempt: int) -> None:
    """From now on no attempt below `attempt` may commit.

    Raises AttemptReplacedError if a newer one has started.
    """
    with _locked(folder) as descriptor:
        _refuse_older(descriptor, attempt)
        os.pwrite(descriptor, str(attempt).encode(), 0)  # only grows, so nothing is left behind
        os.fsync(descriptor)


@contextmanager
def inside_fence(folder: Path, attempt: int) -> Iterator[None]:
    """No newer attempt starts while the caller commits.

    Raises AttemptReplacedError if one has.
    """
    with _locked(folder) as descriptor:
        _refuse_older(descriptor, attempt)
        yield


@contextmanager
def _locked(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder / NAME, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def _refuse_older(descriptor: int, attempt: int) -> None:
    newest = int(os.pread(descriptor, 32, 0) or b"-1")
    if newest > attempt:
        raise AttemptReplacedError(
            f"attempt {attempt} was replaced by attempt {newest} and may not save"
        )
