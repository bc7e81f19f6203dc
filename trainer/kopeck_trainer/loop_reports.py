"""The reports of a program with a training loop of its own."""

from dataclasses import dataclass, field
from functools import cache
from time import monotonic

from kopeck_trainer.reporter import Reporter, process_reporter


@dataclass
class LoopReports:
    """Counts the steps of a foreign loop. Between steps such a process computes."""

    reporter: Reporter
    steps: int = 0
    samples: int = 0
    tokens: int | None = None
    """Of this process; None until a step tells its own."""
    has_stepped: bool = False
    """In this process: its start-up is over."""
    ended_at_seconds: float = field(default_factory=monotonic)

    def resumed(self, steps: int) -> None:
        """Where the loop begins. Each of those steps is taken for as large as the next one."""
        self.steps = steps

    def step(self, *, samples: int, loss: float | None, tokens: int | None = None) -> None:
        now = monotonic()
        is_steady = self.has_stepped
        if not self.has_stepped:
            self.has_stepped = True
            self.samples = self.steps * samples
            self.reporter.clock.switch("compute")
        self.steps += 1
        self.samples += samples
        if tokens is not None:
            self.tokens = (self.tokens or 0) + tokens
            self.reporter.update(tokens=self.tokens)
        self.reporter.step_ended(
            samples=samples,
            step=self.steps,
            job_samples=self.samples * self.reporter.world_size,
            seconds=now - self.ended_at_seconds,
            loss=None if loss is None else float(loss),
            is_steady=is_steady,
        )
        self.ended_at_seconds = now


@cache
def loop_reports() -> LoopReports:
    return LoopReports(process_reporter())
