"""One step of one rank as it is drawn."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kopeck.trace.events import Events
from kopeck.trace.intervals import Intervals, difference
from kopeck.trace.kinds import COMMUNICATION, GpuEvents, Kind, busy
from kopeck.trace.steps import Step

WHOLE_TRACE = -1
"""The number of the one step that a trace without any is drawn as."""


@dataclass(frozen=True)
class Timeline:
    """What the GPU did of what a step launched; nanoseconds since the trace's base."""

    compute: Intervals
    communication: Intervals
    exposed: Intervals
    """Communication while nothing computes."""
    memory: Intervals

    @property
    def bounds_ns(self) -> tuple[int, int]:
        parts = (self.compute, self.communication, self.memory)
        starts = np.concatenate([part.starts_ns for part in parts])
        ends = np.concatenate([part.ends_ns for part in parts])
        return int(starts.min()), int(ends.max())


def timelines(
    events: Events, gpu: GpuEvents, steps: tuple[Step, ...], numbers: npt.NDArray[np.int64]
) -> dict[int, Timeline]:
    """By the step's number, of the steps that launched anything."""
    wanted = [step.number for step in steps] or [WHOLE_TRACE]
    return {
        number: _timeline(events, GpuEvents(gpu.rows[chosen], gpu.kinds[chosen]))
        for number in wanted
        if (chosen := numbers == number).any()
    }


def _timeline(events: Events, gpu: GpuEvents) -> Timeline:
    compute = busy(events, gpu, Kind.COMPUTE)
    communication = busy(events, gpu, *COMMUNICATION)
    return Timeline(
        compute=compute,
        communication=communication,
        exposed=difference(communication, compute),
        memory=busy(events, gpu, Kind.MEMORY),
    )
