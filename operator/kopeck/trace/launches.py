"""Which call of the host launched what on the GPU, and how long that took to begin."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kopeck.trace.events import UNKNOWN, Category, Events


def launch_rows(events: Events, gpu_rows: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """The row of the call that launched each event, joined on the correlation; -1 if unknown.

    All of a CUDA graph's kernels have the one call that launched the graph.
    """
    calls = events.rows(Category.LAUNCH)
    calls = calls[events.correlations[calls] != UNKNOWN]
    # Of several calls with one correlation (a wrapper and the driver's own), the first launched.
    keys, first = np.unique(events.correlations[calls], return_index=True)
    if not keys.size:
        return np.full(gpu_rows.size, -1, dtype=np.intp)
    wanted = events.correlations[gpu_rows]
    at = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
    return np.where(keys[at] == wanted, calls[first[at]], -1)


@dataclass(frozen=True)
class LaunchFigures:
    """How long launched kernels took to begin."""

    launched: int
    """Events whose launch is in the trace."""
    delay_p50_seconds: float
    """From the end of the call to the begin on the GPU, at least 0; long while a queue is full."""
    delay_p99_seconds: float
    before_launch: int
    """Events that begin before their launch does: the clocks of host and GPU disagree."""


def launch_figures(
    events: Events, gpu_rows: npt.NDArray[np.intp], launches: npt.NDArray[np.intp]
) -> LaunchFigures | None:
    """None where no launch is known."""
    known = launches >= 0
    if not known.any():
        return None
    begins = events.starts_ns[gpu_rows[known]]
    calls = launches[known]
    delays = np.maximum(begins - events.ends_ns[calls], 0) / 1e9
    median, high = np.percentile(delays, (50, 99))
    return LaunchFigures(
        launched=int(known.sum()),
        delay_p50_seconds=float(median),
        delay_p99_seconds=float(high),
        before_launch=int((begins < events.starts_ns[calls]).sum()),
    )
