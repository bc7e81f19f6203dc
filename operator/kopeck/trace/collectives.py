"""The collectives of one rank: what each is, between whom, how many bytes."""

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

import numpy as np
import numpy.typing as npt

from kopeck.trace.events import Category, CollectiveArgs, Events, Origin
from kopeck.trace.kinds import GpuEvents, Kind


class CollectiveKind(StrEnum):
    """What a collective does; the value is its name in tables."""

    ALL_REDUCE = "all-reduce"
    ALL_GATHER = "all-gather"
    REDUCE_SCATTER = "reduce-scatter"
    ALL_TO_ALL = "all-to-all"
    BARRIER = "barrier"
    BROADCAST = "broadcast"
    REDUCE = "reduce"
    GATHER = "gather"
    SCATTER = "scatter"
    SEND_RECEIVE = "send-receive"
    UNKNOWN = "unknown"


SYNCHRONISING = frozenset(
    {
        CollectiveKind.ALL_REDUCE,
        CollectiveKind.ALL_GATHER,
        CollectiveKind.REDUCE_SCATTER,
        CollectiveKind.ALL_TO_ALL,
        CollectiveKind.BARRIER,
    }
)
"""In these every rank needs every other: none can end before the last has come.

A root of the others may leave early, or a leaf come late, so that their shortest duration is no
transfer."""

# In this order: "reduce" is in "all_reduce", too.
_KINDS_BY_NAME = (
    (re.compile(r"all_?reduce"), CollectiveKind.ALL_REDUCE),
    (re.compile(r"reduce_?scatter"), CollectiveKind.REDUCE_SCATTER),
    (re.compile(r"all_?gather"), CollectiveKind.ALL_GATHER),
    (re.compile(r"all_?to_?all"), CollectiveKind.ALL_TO_ALL),
    (re.compile(r"barrier"), CollectiveKind.BARRIER),
    (re.compile(r"broadcast"), CollectiveKind.BROADCAST),
    (re.compile(r"send_?recv|send|recv"), CollectiveKind.SEND_RECEIVE),
    (re.compile(r"scatter"), CollectiveKind.SCATTER),
    (re.compile(r"gather"), CollectiveKind.GATHER),
    (re.compile(r"reduce"), CollectiveKind.REDUCE),
)
_RANKS = re.compile(r"\[( *[0-9]{1,9} *(?:, *[0-9]{1,9} *)*)\]")
_BYTES = {
    "Byte": 1,
    "Char": 1,
    "Bool": 1,
    "Short": 2,
    "Half": 2,
    "BFloat16": 2,
    "Int": 4,
    "Float": 4,
    "Long": 8,
    "Double": 8,
    "ComplexFloat": 8,
    "ComplexDouble": 16,
    "Float8_e5m2": 1,
    "Float8_e4m3fn": 1,
    "Float8_e5m2fnuz": 1,
    "Float8_e4m3fnuz": 1,
}


@dataclass(frozen=True)
class Group:
    """Who takes part in a collective."""

    name: str
    """Not unique: disjoint groups may share one."""
    ranks: tuple[int, ...] | None
    """All of them; None where the trace does not tell."""
    size: int | None


@dataclass(frozen=True)
class Collective:
    """One kernel of one rank."""

    kind: CollectiveKind
    kernel: str
    group: Group
    stream: int
    step: int
    """The number of the step it was launched in; -1 for none."""
    sequence: int | None
    """The group's own count of its collectives, where torch tells it."""
    elements: tuple[int | None, int | None]
    """In and out."""
    dtype: str
    bytes: int | None
    """The larger of in and out."""
    start_ns: int
    """Since 1970, if the trace tells what it counts from."""
    duration_ns: int
    peers: tuple[int, int] | None = None
    """From and to, of a send or receive."""


def collectives_of(
    origin: Origin,
    events: Events,
    gpu: GpuEvents,
    launches: npt.NDArray[np.intp],
    steps: npt.NDArray[np.int64],
) -> list[Collective]:
    """In order of their begin. Copies between GPUs are none: nothing tells what they belong to."""
    announced = _announced_names(events, launches)
    groups: dict[tuple[str, str, str, int | None], Group] = {}
    found = []
    for at in np.flatnonzero(gpu.kinds == Kind.COMMUNICATION):
        row = int(gpu.rows[at])
        args = events.collectives.get(row, CollectiveArgs())
        kernel = events.name_of(row).partition("(")[0]
        told = args.group_name, args.group_description, args.group_ranks, args.group_size
        # A trace has few groups and many collectives.
        if (group := groups.get(told)) is None:
            group = groups[told] = _group(args, origin)
        found.append(
            Collective(
                kind=_kind(args.name or announced.get(int(launches[at]), ""), kernel),
                kernel=kernel,
                group=group,
                stream=int(events.streams[row]),
                step=int(steps[at]),
                sequence=args.sequence,
                elements=(args.elements_in, args.elements_out),
                dtype=args.dtype,
                bytes=_bytes(args),
                start_ns=origin.base_ns + int(events.starts_ns[row]),
                duration_ns=int(events.ends_ns[row] - events.starts_ns[row]),
                peers=_peers(args),
            )
        )
    return sorted(found, key=lambda each: each.start_ns)


@cache
def _kind(name: str, kernel: str) -> CollectiveKind:
    """By torch's name, or else by the kernel's; NCCL runs an all-to-all as SendRecv."""
    for each in (name, kernel):
        for pattern, kind in _KINDS_BY_NAME:
            if pattern.search(each.lower()):
                return kind
    return CollectiveKind.UNKNOWN


def _announced_names(events: Events, launches: npt.NDArray[np.intp]) -> dict[int, str]:
    """By the call's row the `nccl:` annotation around it: older traces have that alone."""
    named: dict[int, str] = {}
    rows = events.rows(Category.ANNOTATION)
    told = [at for at, name in enumerate(events.names) if _is_told(name)]
    rows = rows[np.isin(events.name_ids[rows], told)]
    has_launched = np.zeros(len(events), dtype=np.bool_)
    has_launched[launches[launches >= 0]] = True
    calls = np.flatnonzero(has_launched)
    for thread in np.unique(events.threads[rows]):
        own = rows[events.threads[rows] == thread]
        own = own[np.argsort(events.starts_ns[own], kind="stable")]
        its_calls = calls[events.threads[calls] == thread]
        at = np.searchsorted(events.starts_ns[own], events.starts_ns[its_calls], side="right") - 1
        inside = (at >= 0) & (events.ends_ns[own[at]] >= events.ends_ns[its_calls])
        for call, row in zip(its_calls[inside], own[at[inside]], strict=True):
            named[int(call)] = events.name_of(int(row))
    return named


def _is_told(annotation: str) -> bool:
    return annotation.startswith(("nccl:", "rccl:"))


def _group(args: CollectiveArgs, origin: Origin) -> Group:
    """By the list of its ranks, unless that is cut; then as the trace's head has the group."""
    told = _RANKS.fullmatch(args.group_ranks)
    ranks = tuple(int(rank) for rank in told[1].split(",")) if told else None
    if ranks is None or (args.group_size is not None and len(ranks) != args.group_size):
        ranks = origin.groups.get(args.group_name)
    if ranks is not None:
        return Group(args.group_name, ranks, len(ranks))
    # A trace without any group, of before torch 2.2: all collectives are taken for the world's.
    size = args.group_size if args.group_name or args.group_size else origin.world_size
    return Group(f"{args.group_name} {args.group_description}".strip(), None, size)


def _bytes(args: CollectiveArgs) -> int | None:
    told = (args.elements_in, args.elements_out)
    elements = [each for each in told if each is not None and each >= 0]
    size = _BYTES.get(args.dtype)
    return max(elements) * size if elements and size else None


def _peers(args: CollectiveArgs) -> tuple[int, int] | None:
    if args.source_rank is None or args.target_rank is None or args.source_rank == args.target_rank:
        return None
    return args.source_rank, args.target_rank
