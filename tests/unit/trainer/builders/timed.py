"""The toy, on a clock of CPU time, which other work on the machine does not stretch."""

from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage

import toy

from kopeck_trainer import TrainConfig, TrainingTask
from kopeck_trainer.reporter import process_reporter


def build(config: TrainConfig) -> TrainingTask:
    clock = process_reporter().clock
    clock._now, clock._since = cpu_seconds, cpu_seconds()
    return toy.build(config)


def cpu_seconds() -> float:
    """Of this rank and of the compilers that it ran."""
    usages = getrusage(RUSAGE_SELF), getrusage(RUSAGE_CHILDREN)
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)
