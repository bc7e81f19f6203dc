"""How fast a collective moved its data: algorithm and bus bandwidth, as NCCL's tests define them.

https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from kopeck.trace.collectives import CollectiveKind
from kopeck.trace.matching import Match

_PEAK_BYTES_PER_SECOND = (
    ("V100-SXM", 150e9),
    ("A100-SXM", 300e9),
    ("A800", 200e9),
    ("H100 80GB HBM3", 450e9),
    ("H800", 200e9),
    ("H200", 450e9),
    ("B200", 900e9),
)
"""NVLink in one direction, by part of the GPU's name; from NVIDIA's data sheets."""


def bus_factor(kind: CollectiveKind, ranks: int) -> float | None:
    """Bus bandwidth by algorithm bandwidth; None for kinds that have none."""
    match kind:
        case CollectiveKind.ALL_REDUCE:
            return 2 * (ranks - 1) / ranks
        case (
            CollectiveKind.ALL_GATHER
            | CollectiveKind.REDUCE_SCATTER
            | CollectiveKind.ALL_TO_ALL
            | CollectiveKind.GATHER
            | CollectiveKind.SCATTER
        ):
            return (ranks - 1) / ranks
        case CollectiveKind.BROADCAST | CollectiveKind.REDUCE | CollectiveKind.SEND_RECEIVE:
            return 1.0
        case _:
            return None


def peak_bytes_per_second(gpu: str | None) -> float | None:
    """What the links of a GPU carry in one direction; None for one that is not known here."""
    return next((peak for part, peak in _PEAK_BYTES_PER_SECOND if gpu and part in gpu), None)


@dataclass(frozen=True)
class Bandwidth:
    """Matched collectives of one kind, size and group size."""

    kind: CollectiveKind
    bytes: int
    dtype: str
    ranks: int
    count: int
    transfer_seconds: float
    """The median of the transfers."""
    algorithm_bytes_per_second: float
    bus_bytes_per_second: float | None
    """None where the kind has none, or where it is above what the link carries."""
    is_above_link: bool
    """Data lay ready before the last rank came, or the network reduced: no bandwidth of a link."""


def bandwidths(matches: Iterable[Match], gpu: str | None) -> list[Bandwidth]:
    """By kind and size, the most bytes first; of collectives whose size is known."""
    classes: dict[tuple[CollectiveKind, int, str, int], list[int]] = defaultdict(list)
    for match in matches:
        if match.bytes and match.transfer_ns:
            key = match.kind, match.bytes, match.dtype, len(match.collectives)
            classes[key].append(match.transfer_ns)
    peak = peak_bytes_per_second(gpu)
    found = [_bandwidth(*key, durations, peak) for key, durations in classes.items()]
    return sorted(found, key=lambda each: (-each.bytes * each.count, each.kind))


def _bandwidth(  # noqa: PLR0913  the class, its durations, the link
    kind: CollectiveKind,
    size: int,
    dtype: str,
    ranks: int,
    durations_ns: list[int],
    peak: float | None,
) -> Bandwidth:
    seconds = median(durations_ns) / 1e9
    factor = bus_factor(kind, ranks)
    bus = None if factor is None else size / seconds * factor
    is_above = bus is not None and peak is not None and bus > peak
    return Bandwidth(
        kind=kind,
        bytes=size,
        dtype=dtype,
        ranks=ranks,
        count=len(durations_ns),
        transfer_seconds=seconds,
        algorithm_bytes_per_second=size / seconds,
        bus_bytes_per_second=None if is_above else bus,
        is_above_link=is_above,
    )
