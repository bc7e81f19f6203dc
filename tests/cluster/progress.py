"""What a long wait is for, on standard error: one living line on a terminal, plain lines else."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic

TICK_SECONDS = 1.0


@contextmanager
def step(what: str) -> Iterator[None]:
    """Show `what` and its elapsed seconds for as long as the block runs."""
    began = monotonic()
    done = Event()
    ticker = Thread(target=_tick, args=(what, began, done), daemon=True)
    ticker.start()
    try:
        yield
    finally:
        done.set()
        ticker.join()
        start_of_line = "\r" if sys.stderr.isatty() else ""
        _say(f"{start_of_line}{what}: {monotonic() - began:.1f} s\n")


def _tick(what: str, began: float, done: Event) -> None:
    if not sys.stderr.isatty():
        _say(f"{what} ...\n")
        return
    while not done.wait(TICK_SECONDS):
        _say(f"\r{what}: {monotonic() - began:.0f} s")


def _say(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
