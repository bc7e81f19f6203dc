"""What is measured of one rank alone: small enough to be handed from process to process."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kopeck.trace.breakdown import Breakdown, breakdown
from kopeck.trace.collectives import Collective, collectives_of
from kopeck.trace.events import Origin, RankTrace
from kopeck.trace.kinds import DEFAULT_PATTERNS, GpuEvents, Kind, Patterns, gpu_events
from kopeck.trace.launches import LaunchFigures, launch_figures, launch_rows
from kopeck.trace.steps import Step, step_numbers, steps_of
from kopeck.trace.synchronisations import Synchronisation, synchronisations
from kopeck.trace.timeline import Timeline, timelines


@dataclass(frozen=True)
class RankSummary:
    """One rank's trace, measured; None where the trace does not tell."""

    origin: Origin
    lost: tuple[str, ...]
    breakdown: Breakdown | None
    """None for a trace of a CPU alone."""
    launches: LaunchFigures | None
    steps: tuple[Step, ...]
    kernels_per_step: float | None
    """The median over the steps."""
    synchronisations: tuple[Synchronisation, ...]
    collectives: Sequence[Collective]
    timelines: dict[int, Timeline]


def summarise(trace: RankTrace, patterns: Patterns = DEFAULT_PATTERNS) -> RankSummary:
    """Measure one rank."""
    events = trace.events
    gpu = gpu_events(events, patterns)
    launched_by = launch_rows(events, gpu.rows)
    steps = steps_of(events)
    numbers = step_numbers(steps, events, launched_by)
    return RankSummary(
        origin=trace.origin,
        lost=trace.lost,
        breakdown=breakdown(events, gpu, launched_by),
        launches=launch_figures(events, gpu.rows, launched_by),
        steps=steps,
        kernels_per_step=_kernels_per_step(gpu, steps, numbers),
        synchronisations=synchronisations(events),
        collectives=collectives_of(trace.origin, events, gpu, launched_by, numbers),
        timelines=timelines(events, gpu, steps, numbers),
    )


def _kernels_per_step(
    gpu: GpuEvents, steps: Sequence[Step], numbers: npt.NDArray[np.int64]
) -> float | None:
    of_steps = numbers[(gpu.kinds == Kind.COMPUTE) | (gpu.kinds == Kind.COMMUNICATION)]
    counts = [int((of_steps == step.number).sum()) for step in steps]
    return float(np.median(counts)) if counts and any(counts) else None
