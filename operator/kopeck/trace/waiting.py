"""Each rank's communication as transfer and waiting for late ranks, and who was late."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kopeck.trace.collectives import Collective
from kopeck.trace.intervals import union
from kopeck.trace.matching import Match

_LEAST_SHARE_OF_SPAN = 0.01
_LEAST_FAIR_SHARES = 1.5


@dataclass(frozen=True)
class Split:
    """Of one rank: nanoseconds of communication, by what passed in it.

    `transfer_ns`, `wait_ns` and `unsplit_ns` are sums over kernels: where kernels of several
    streams run at once, more than the time that passed. The others are time that passed.
    """

    transfer_ns: int
    wait_ns: int
    unsplit_ns: int
    """Of collectives that were not matched, or that cannot be split."""
    waited_ns: int
    """At least one kernel waits for a late rank: a part of the rank's span."""
    held_up_ns: int
    """How long each other rank waited for this one, on average, where it came last."""


def splits_of(
    by_rank: Mapping[int, Sequence[Collective]], matches: Sequence[Match]
) -> dict[int, Split]:
    """By rank."""
    transfer, wait = dict.fromkeys(by_rank, 0), dict.fromkeys(by_rank, 0)
    waits: dict[int, list[_Wait]] = defaultdict(list)
    waits_for: dict[int, dict[int, list[_Wait]]] = defaultdict(lambda: defaultdict(list))
    for match in matches:
        last = match.last_rank
        for rank, each in match.collectives.items():
            wait_ns = match.wait_ns(rank)
            transfer[rank] += match.transfer_ns
            wait[rank] += wait_ns
            if rank != last:
                # The last to come starts the transfer, so that the first part is the waiting.
                begin_ns = each.start_ns
                waits[rank].append((begin_ns, begin_ns + wait_ns))
                waits_for[last][rank].append((begin_ns, begin_ns + wait_ns))
    return {
        rank: Split(
            transfer_ns=transfer[rank],
            wait_ns=wait[rank],
            unsplit_ns=sum(each.duration_ns for each in collectives) - transfer[rank] - wait[rank],
            waited_ns=_passed_ns(waits[rank]),
            held_up_ns=_mean_passed_ns(waits_for[rank].values()),
        )
        for rank, collectives in by_rank.items()
    }


_Wait = tuple[int, int]
"""Begin and end, in nanoseconds of the waiting rank's own clock."""


def _passed_ns(waits: Sequence[_Wait]) -> int:
    if not waits:
        return 0
    first_ns = waits[0][0]
    since_first = [(begin - first_ns, end - first_ns) for begin, end in waits]
    begins, ends = np.array(since_first, dtype=np.int64).T
    return union(begins, ends).total_ns


def _mean_passed_ns(waits_by_rank: Collection[Sequence[_Wait]]) -> int:
    return sum(map(_passed_ns, waits_by_rank)) // max(len(waits_by_rank), 1)


def stragglers(splits: Mapping[int, Split], span_ns: int) -> list[int]:
    """Ranks that the others wait for: 1 % of the time, and 1.5 times a rank's fair share of it."""
    total = sum(split.held_up_ns for split in splits.values())
    least = max(span_ns * _LEAST_SHARE_OF_SPAN, total * _LEAST_FAIR_SHARES / max(len(splits), 1))
    return [rank for rank, split in sorted(splits.items()) if split.held_up_ns >= max(least, 1)]
