"""Collectives matched across ranks: who waited for whom, and how long the transfer took.

No clock is compared for it. Where every rank needs every other, the last to come waits for nobody:
the shortest duration is the transfer, the rest of each rank's is waiting for late ranks.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kopeck.trace.collectives import SYNCHRONISING, Collective, CollectiveKind, Group

_Key = tuple[Group, tuple[int, int] | None, int | None, int, int]


@dataclass(frozen=True)
class Match:
    """One collective as its ranks saw it."""

    collectives: dict[int, Collective]
    """By rank, all that take part."""

    @property
    def kind(self) -> CollectiveKind:
        return next(iter(self.collectives.values())).kind

    @property
    def bytes(self) -> int | None:
        """The largest of the ranks' sizes."""
        sizes = [each.bytes for each in self.collectives.values()]
        known = [size for size in sizes if size is not None]
        return max(known) if len(known) == len(sizes) else None

    @property
    def dtype(self) -> str:
        return next(iter(self.collectives.values())).dtype

    @property
    def transfer_ns(self) -> int:
        return min(each.duration_ns for each in self.collectives.values())

    @property
    def last_rank(self) -> int:
        """The rank that the others waited for."""
        return min(self.collectives, key=lambda rank: self.collectives[rank].duration_ns)

    def wait_ns(self, rank: int) -> int:
        return self.collectives[rank].duration_ns - self.transfer_ns


def matches_of(by_rank: Mapping[int, Sequence[Collective]], world_size: int | None) -> list[Match]:
    """What can be split into waiting and transfer: synchronising kinds, sends with their receives.

    Collectives are the same where group and sequence number are; where torch tells none, where
    they are the n-th of a group's stream in the same step. Those of a group and step are left out
    where ranks are missing, or differ in count, kind, dtype or size at any n.
    """
    sequences: dict[_Key, dict[int, list[Collective]]] = defaultdict(dict)
    for rank, collectives in by_rank.items():
        places = _stream_places(collectives)
        for each in collectives:
            if each.kind in SYNCHRONISING or each.peers is not None:
                key = _key(each, places)
                sequences[key].setdefault(rank, []).append(each)
    found = []
    for (group, peers, *_), per_rank in sequences.items():
        if _is_complete(group, peers, per_rank, world_size) and _agree(per_rank):
            ranks = sorted(per_rank)
            together = zip(*(per_rank[rank] for rank in ranks), strict=True)
            found += [Match(dict(zip(ranks, same, strict=True))) for same in together]
    return sorted(found, key=lambda match: next(iter(match.collectives.values())).start_ns)


def _key(each: Collective, places: Mapping[tuple[Group, int], int]) -> _Key:
    peers = each.peers if each.kind is CollectiveKind.SEND_RECEIVE else None
    if each.sequence is not None:
        return each.group, peers, each.sequence, -1, -1
    return each.group, peers, None, each.step, places[each.group, each.stream]


def _stream_places(collectives: Sequence[Collective]) -> dict[tuple[Group, int], int]:
    """A stream's place among those of its group: its number is each rank's own."""
    streams: dict[Group, set[int]] = defaultdict(set)
    for each in collectives:
        streams[each.group].add(each.stream)
    return {
        (group, stream): place
        for group, numbers in streams.items()
        for place, stream in enumerate(sorted(numbers))
    }


def _is_complete(
    group: Group,
    peers: tuple[int, int] | None,
    per_rank: Mapping[int, Sequence[Collective]],
    world_size: int | None,
) -> bool:
    """Whether all that take part are there: the shortest duration of some is no transfer."""
    if peers is not None:
        return set(per_rank) == set(peers)
    if group.ranks is not None:
        return len(per_rank) > 1 and set(per_rank) == set(group.ranks)
    return len(per_rank) > 1 and len(per_rank) == (group.size or world_size)


def _agree(per_rank: Mapping[int, Sequence[Collective]]) -> bool:
    """Whether the ranks tell of the same collectives in the same order."""
    told = {tuple(_signature(each) for each in sequence) for sequence in per_rank.values()}
    return len(told) == 1


def _signature(each: Collective) -> tuple[object, ...]:
    # What a rank sends in an all-to-all, or holds of one side of a send, is its own.
    same_size = each.kind not in {CollectiveKind.ALL_TO_ALL, CollectiveKind.SEND_RECEIVE}
    return each.kind, each.dtype, each.elements if same_size else None
