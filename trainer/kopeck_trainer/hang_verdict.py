"""Which rank the others wait for: what each says of itself once no step ends any more."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from kopeck_trainer.flight_recorder import Collective

NAMED_RANKS = 8
"""More than these are only counted: the sentence goes into a message of 4 kB."""


@dataclass(frozen=True, kw_only=True)
class Stance:
    """Where one rank stands."""

    collective: Collective | None
    """That it waits in."""
    place: str
    """The line of Python that its main thread is in."""


def stance_as_json(stance: Stance) -> str:
    return json.dumps(asdict(stance))


def stance_from_json(text: str) -> Stance:
    content = json.loads(text)
    collective = content["collective"]
    return Stance(
        collective=Collective(**collective) if collective else None, place=content["place"]
    )


def verdict(stances: Mapping[int, Stance], ranks: int) -> str:
    """One sentence that names the collective and the ranks that are missing from it.

    `stances` are by rank; of `ranks`, those without one did not answer.
    """
    waiting = {rank: each.collective for rank, each in stances.items() if each.collective}
    if not waiting:
        places = [f"rank {rank} is at {each.place}" for rank, each in sorted(stances.items())]
        return f"no rank waits in a collective: {_some(places)}{_silent(stances, ranks)}"
    furthest = max(waiting.values(), key=lambda each: each.number)
    joined = sorted(rank for rank, each in waiting.items() if each == furthest)
    missing = sorted(set(range(ranks)) - set(joined), key=lambda rank: (rank in waiting, rank))
    if not missing:
        return f"all ranks wait in {furthest}"
    why = [f"rank {rank} ({_why(stances.get(rank))})" for rank in missing]
    return f"rank {joined[0]} waits in {furthest} for {_some(why)}"


def _why(stance: Stance | None) -> str:
    if stance is None:
        return "does not answer"
    return f"in {stance.collective}" if stance.collective else f"at {stance.place}"


def _silent(stances: Mapping[int, Stance], ranks: int) -> str:
    silent = [f"rank {rank} does not answer" for rank in range(ranks) if rank not in stances]
    return f", {_some(silent)}" if silent else ""


def _some(sentences: list[str]) -> str:
    rest = len(sentences) - NAMED_RANKS
    more = f", and {rest} more" if rest > 0 else ""
    return ", ".join(sentences[:NAMED_RANKS]) + more
