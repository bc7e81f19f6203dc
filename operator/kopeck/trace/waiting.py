"""Each rank's communication as transfer and waiting for late ranks, and who was late."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kopeck.trace.collectives import Collective
from kopeck.trace.matching import Match

_LEAST_SHARE_OF_SPAN = 0.01
_LEAST_FAIR_SHARES = 1.5


@dataclass(frozen=True)
class Split:
    """Of one rank: nanoseconds of communication kernels, by what passed in them.

    Sums over kernels: where kernels of several streams run at once, more than the time that passed.
    """

    transfer_ns: int
    wait_ns: int
    unsplit_ns: int
    """Of collectives that were not matched, or that cannot be split."""
    held_up_ns: int
    """How long each other rank waited for this one, on average, where it came last."""


def splits_of(
    by_rank: Mapping[int, Sequence[Collective]], matches: Sequence[Match]
) -> dict[int, Split]:
    """By rank."""
    transfer, wait = dict.fromkeys(by_rank, 0), dict.fromkeys(by_rank, 0)
    held_up = dict.fromkeys(by_rank, 0)
    for match in matches:
        for rank in match.collectives:
            transfer[rank] += match.transfer_ns
            wait[rank] += match.wait_ns(rank)
        waited = sum(match.wait_ns(rank) for rank in match.collectives)
        held_up[match.last_rank] += waited // (len(match.collectives) - 1)
    return {
        rank: Split(
            transfer_ns=transfer[rank],
            wait_ns=wait[rank],
            unsplit_ns=sum(each.duration_ns for each in collectives) - transfer[rank] - wait[rank],
            held_up_ns=held_up[rank],
        )
        for rank, collectives in by_rank.items()
    }


def stragglers(splits: Mapping[int, Split], span_ns: int) -> list[int]:
    """Ranks that the others wait for: 1 % of the time, and 1.5 times a rank's fair share of it."""
    total = sum(split.held_up_ns for split in splits.values())
    least = max(span_ns * _LEAST_SHARE_OF_SPAN, total * _LEAST_FAIR_SHARES / max(len(splits), 1))
    return [rank for rank, split in sorted(splits.items()) if split.held_up_ns >= max(least, 1)]
