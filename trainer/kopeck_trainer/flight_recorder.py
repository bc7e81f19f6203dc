"""What torch's flight recorder knows of the collectives that this rank waits in."""

import json
from dataclasses import dataclass
from typing import Any

from torch._C import _distributed_c10d as c10d


@dataclass(frozen=True, kw_only=True)
class Collective:
    """One that was started and has not ended."""

    name: str
    """As the backend calls it, such as `gloo:all_reduce`."""
    group: str
    number: int
    """Of the group's collectives, from 1; the same one has the same number on all ranks."""

    def __str__(self) -> str:
        return f"{self.name} {self.number} of {self.group}"


def oldest_in_flight() -> Collective | None:
    """None where this rank waits in no collective."""
    running = [each for each in entries_in_flight() if not each["is_p2p"]]
    if not running:
        return None
    oldest = min(running, key=lambda each: int(each["time_created_ns"]))
    return Collective(
        name=oldest["profiling_name"],
        group=oldest["process_group"][1] or oldest["process_group"][0],
        number=oldest["collective_seq_id"],
    )


def entries_in_flight() -> list[dict[str, Any]]:
    """The recorder's entries of what was started and has not ended, of all backends."""
    recorded = [*_entries("_dump_fr_trace_json"), *_entries("_dump_nccl_trace_json")]
    return [each for each in recorded if not each["retired"] and each["state"] != "completed"]


def _entries(dump_name: str) -> list[dict[str, Any]]:
    """By a function of torch 2.11 to 2.15 that has no public name; a CPU build has no NCCL."""
    dump = getattr(c10d, dump_name, None)
    if dump is None:
        return []
    entries: list[dict[str, Any]] = json.loads(dump(onlyActive=True)).get("entries", [])
    return entries
