"""Where the time of one GPU went. Each nanosecond from its first event to its last counts once."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kopeck.trace.events import Events
from kopeck.trace.intervals import Intervals, intersection
from kopeck.trace.kinds import COMMUNICATION, GpuEvents, Kind, busy

KERNEL_WAIT_SHORTER_THAN_NS = 30_000
"""A shorter gap, launched in time, is the GPU's own pace from one kernel to the next.

The threshold of Holistic Trace Analysis, which calls it nanoseconds and takes microseconds.
"""


@dataclass(frozen=True)
class IdleCauses:
    """Idle nanoseconds by what the GPU waited for; they add up to the idle time."""

    host_wait_ns: int
    """The next event was launched only after the gap had begun."""
    kernel_wait_ns: int
    """It was launched before, and the gap is shorter than 30 µs."""
    other_ns: int
    """It was launched before and still waited (for an event, a copy), or its launch is unknown."""


@dataclass(frozen=True)
class Breakdown:
    """Nanoseconds of one GPU. span = compute + exposed + memory + idle."""

    span_ns: int
    """From the first event's begin to the last one's end."""
    compute_ns: int
    """At least one kernel computes."""
    communication_ns: int
    """At least one kernel or copy communicates."""
    peer_copy_ns: int
    """At least one copy runs between GPUs; part of the communication."""
    overlap_ns: int
    """Communication while at least one kernel computes."""
    memory_ns: int
    """Only copies and memsets run."""
    idle: IdleCauses
    kernels: int
    """Kernels that ran, of computation and communication."""

    @property
    def exposed_ns(self) -> int:
        """Communication while nothing computes."""
        return self.communication_ns - self.overlap_ns

    @property
    def idle_ns(self) -> int:
        return self.idle.host_wait_ns + self.idle.kernel_wait_ns + self.idle.other_ns

    @property
    def overlap_ratio(self) -> float | None:
        """|U(communication) ∩ U(computation)| / |U(communication)|, None without communication."""
        return self.overlap_ns / self.communication_ns if self.communication_ns else None


def breakdown(events: Events, gpu: GpuEvents, launches: npt.NDArray[np.intp]) -> Breakdown | None:
    """None where nothing ran on a GPU."""
    everything = busy(events, gpu)
    if not everything.total_ns:
        return None
    compute = busy(events, gpu, Kind.COMPUTE)
    communication = busy(events, gpu, *COMMUNICATION)
    overlap_ns = intersection(communication, compute).total_ns
    exposed_ns = communication.total_ns - overlap_ns
    return Breakdown(
        span_ns=int(everything.ends_ns[-1] - everything.starts_ns[0]),
        compute_ns=compute.total_ns,
        communication_ns=communication.total_ns,
        peer_copy_ns=busy(events, gpu, Kind.PEER_COPY).total_ns,
        overlap_ns=overlap_ns,
        memory_ns=everything.total_ns - compute.total_ns - exposed_ns,
        idle=_idle_causes(events, gpu, launches, everything.gaps),
        kernels=int(np.isin(gpu.kinds, (Kind.COMPUTE, Kind.COMMUNICATION)).sum()),
    )


def _idle_causes(
    events: Events, gpu: GpuEvents, launches: npt.NDArray[np.intp], gaps: Intervals
) -> IdleCauses:
    """Each gap by the event that ends it."""
    begins = events.starts_ns[gpu.rows]
    order = np.argsort(begins, kind="stable")
    next_launch = launches[order[np.searchsorted(begins[order], gaps.ends_ns)]]
    is_known = next_launch >= 0
    # Row -1 stands for an unknown launch: what is read of it is not used.
    is_host = is_known & (events.starts_ns[next_launch] > gaps.starts_ns)
    lengths = gaps.ends_ns - gaps.starts_ns
    is_kernel = is_known & ~is_host & (lengths < KERNEL_WAIT_SHORTER_THAN_NS)
    return IdleCauses(
        host_wait_ns=int(lengths[is_host].sum()),
        kernel_wait_ns=int(lengths[is_kernel].sum()),
        other_ns=int(lengths[~is_host & ~is_kernel].sum()),
    )
