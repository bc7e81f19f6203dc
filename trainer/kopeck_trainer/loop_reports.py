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
    ended_at_seconds: float = field(default_factory=monotonic)

    def step(self, *, samples: int, loss: float | None) -> None:
        now = monotonic()
        if self.steps == 0:
            self.reporter.clock.switch("compute")
        self.steps += 1
        self.samples += samples
        self.reporter.step_ended(
            samples=samples,
            step=self.steps,
            job_samples=self.samples * self.reporter.world_size,
            seconds=now - self.ended_at_seconds,
            loss=None if loss is None else float(loss),
        )
        self.ended_at_seconds = now


@cache
def loop_reports() -> LoopReports:
    return LoopReports(process_reporter())
