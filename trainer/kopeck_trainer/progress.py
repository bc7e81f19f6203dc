"""The lines on standard output, by rank 0 alone."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

LINE_SECONDS = 1.0
"""At most one line of progress in this time."""


@dataclass(frozen=True, kw_only=True)
class StepLine:
    """What one line says."""

    step: int
    last_step: int
    loss: float
    samples_per_second: float | None
    """Of the whole job; None until known."""
    phase: str

    def __str__(self) -> str:
        rate = self.samples_per_second
        speed = "" if rate is None else f"  {rate:.1f} samples/s"
        return f"step {self.step}/{self.last_step}  loss {self.loss:.4f}{speed}  {self.phase}"


class Progress:
    """Says what training does; silent on all ranks but the first."""

    def __init__(self, rank: int, now: Callable[[], float] = monotonic) -> None:
        self._speaks = rank == 0
        self._now = now
        self._next_line_at = now()

    def say(self, sentence: str) -> None:
        if self._speaks:
            sys.stdout.write(f"{sentence}\n")
            sys.stdout.flush()

    def step(self, line: StepLine) -> None:
        """Said if the last line is a second old, and for the last step."""
        if self._now() >= self._next_line_at or line.step == line.last_step:
            self._next_line_at = self._now() + LINE_SECONDS
            self.say(str(line))
