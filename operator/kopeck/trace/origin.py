"""What a trace says of itself beside its events: rank, job, GPU, process groups."""

import re
from typing import Any

import msgspec

from kopeck.trace.events import LATEST_NS, Origin
from kopeck.trace.mending import mended

_RANK_IN_NAME = re.compile(r"(?:rank|worker)[-_]?([0-9]{1,9})", re.IGNORECASE)
_MOST_RANKS = 10**9


def metadata_of(head: bytes, tail: bytes) -> dict[str, Any] | None:
    """The object's other keys, from what stands before and behind its events.

    None where neither can be read.
    """
    first = _object(head.rstrip().rstrip(b",") + b"}") if head else {}
    behind = tail.strip().lstrip(b",")
    last = _object(b"{" + behind) if behind else {}
    return None if first is None and last is None else (first or {}) | (last or {})


def _object(text: bytes) -> dict[str, Any] | None:
    for each in (text, mended(text)):
        try:
            found = msgspec.json.decode(each)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        return found if isinstance(found, dict) else None
    return None


def origin_of(file: str, metadata: dict[str, Any]) -> tuple[Origin, tuple[str, ...]]:
    """Whence a trace is, and in sentences what of it had to be guessed."""
    told = _dict(metadata.get("distributedInfo"))
    rank = _int(told.get("rank"), 0, _MOST_RANKS - 1)
    guesses = []
    if rank is None and (found := _RANK_IN_NAME.search(file)):
        rank = int(found[1])
        guesses.append(f"its rank is not told, {rank} is taken from its name")
    base_ns = _int(metadata.get("baseTimeNanoseconds", 0), 0, LATEST_NS)
    if base_ns is None:
        guesses.append("its baseTimeNanoseconds is no time before the year 2100, 0 is taken for it")
    origin = Origin(
        file=file,
        rank=rank,
        world_size=_int(told.get("world_size"), 1, _MOST_RANKS),
        gpu=_gpu(metadata),
        base_ns=base_ns or 0,
        groups=dict(_groups(told)),
    )
    return origin, tuple(guesses)


def _gpu(metadata: dict[str, Any]) -> str | None:
    for device in _list(metadata.get("deviceProperties")):
        name = _dict(device).get("name")
        if isinstance(name, str):
            return name
    return None


def _groups(told: dict[str, Any]) -> list[tuple[str, tuple[int, ...]]]:
    groups = [_dict(each) for each in _list(told.get("pg_config"))]
    return [
        (str(each["pg_name"]), tuple(each["ranks"]))
        for each in groups
        if "pg_name" in each and all(isinstance(rank, int) for rank in _list(each.get("ranks")))
        if _list(each.get("ranks"))
    ]


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _int(value: object, least: int, most: int) -> int | None:
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if least <= value <= most else None
