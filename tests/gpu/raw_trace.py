"""A window's figures from the raw trace, in plain Python: a second opinion on `kopeck.trace`.

Times are whole nanoseconds.
"""

import gzip
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

MARK = "kopeck_window_mark"
PAUSE = "spin_kernel"
"""What `torch.cuda._sleep` runs."""


@dataclass(frozen=True, kw_only=True)
class Kernel:
    name: str
    stream: int
    launched: int
    """When the host asked for it."""
    begin: int
    end: int

    @property
    def communicates(self) -> bool:
        return "nccl" in self.name


@dataclass(frozen=True, kw_only=True)
class RawWindow:
    """Between the first mark and the last one."""

    begin: int
    end: int
    launched: tuple[int, int]
    """When the host asked for the two marks."""
    kernels: list[Kernel]

    @property
    def length(self) -> int:
        return self.end - self.begin

    @property
    def collectives(self) -> list[Kernel]:
        """Of the window's steps by their launch, stream by stream."""
        first, last = self.launched
        found = [
            each for each in self.kernels if each.communicates and first <= each.launched < last
        ]
        return sorted(found, key=lambda each: (each.stream, each.begin))

    @property
    def pause_seconds(self) -> float:
        """For which it was late on purpose."""
        pauses = [each for each in self.kernels if PAUSE in each.name]
        inside = [each for each in pauses if self.begin <= each.begin < self.end]
        return sum(each.end - each.begin for each in inside) / 1e9

    def ratios(self, shortest: Sequence[int]) -> dict[str, float]:
        """By the names that the trainer gives them."""
        communicating = [(each.begin, each.end) for each in self.kernels if each.communicates]
        computing = [(each.begin, each.end) for each in self.kernels if not each.communicates]
        waiting = [
            (each.begin, each.end - transfer)
            for each, transfer in zip(self.collectives, shortest, strict=True)
        ]
        communication, both = self._covered(communicating, computing)
        waited, _ = self._covered(waiting, [])
        return {
            "comm_ratio": communication / self.length,
            "exposed_ratio": (communication - both) / self.length,
            "wait_ratio": waited / self.length,
            "overlap_ratio": both / communication,
        }

    def _covered(
        self, first: Iterable[tuple[int, int]], second: Iterable[tuple[int, int]]
    ) -> tuple[int, int]:
        """How long at least one of the first runs, and how long one of each."""
        edges = [
            edge
            for which, intervals in enumerate((first, second))
            for begin, end in intervals
            if begin < end
            for edge in ((begin, 1, which), (end, -1, which))
        ]
        running, before, one, both = [0, 0], self.begin, 0, 0
        for moment, step, which in sorted(edges):
            now = min(max(moment, self.begin), self.end)
            one += (now - before) * (running[0] > 0)
            both += (now - before) * (running[0] > 0 and running[1] > 0)
            before = now
            running[which] += step
        return one, both


def raw_window(trace: Path) -> RawWindow:
    """Of one GPU, from a packed trace."""
    with gzip.open(trace) as text:
        events = json.load(text, parse_float=Decimal)["traceEvents"]
    launches = {
        each["args"]["correlation"]: int(Decimal(each["ts"]) * 1000)
        for each in events
        if each.get("cat") in {"cuda_runtime", "cuda_driver"} and "correlation" in each["args"]
    }
    kernels = sorted(
        (_kernel(each, launches) for each in events if each.get("cat") == "kernel"),
        key=lambda each: each.begin,
    )
    marks = [each for each in kernels if each.name.startswith(MARK)]
    assert len(marks) > 1, f"{trace} has {len(marks)} marks"
    return RawWindow(
        begin=marks[0].end,
        end=marks[-1].begin,
        launched=(marks[0].launched, marks[-1].launched),
        kernels=kernels,
    )


def shortest(ranks: Sequence[RawWindow]) -> list[int]:
    """Of each collective over the ranks."""
    durations = [[each.end - each.begin for each in rank.collectives] for rank in ranks]
    return [min(together) for together in zip(*durations, strict=True)]


def _kernel(event: dict[str, Any], launches: dict[Any, int]) -> Kernel:
    begin, duration = (int(Decimal(event[each]) * 1000) for each in ("ts", "dur"))
    return Kernel(
        name=event["name"],
        stream=int(event["args"]["stream"]),
        launched=launches.get(event["args"]["correlation"], -1),
        begin=begin,
        end=begin + duration,
    )
