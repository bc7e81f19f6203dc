"""What a GPU does during a few steps, by a trace of torch's profiler."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KINDS = (
    ("compiled", "^triton_"),
    ("communication", "nccl"),
    ("products", "gemm|nvjet|cutlass|cublas"),
    ("attention", "sdpa|flash|fmha|cudnn"),
    ("optimizer", r"^_update|FusedAdam"),
    ("loss", r"^_forward|^_scale"),
    ("gradient norm", "[Nn]orm.*[Ff]unctor|lpnorm|LpNorm"),
    ("copies", "chunk_cat|split_with_sizes|[Cc]opy|Memcpy"),
)
"""By the first expression that is found in a kernel's name. Inductor's names list all that a kernel
does, copies and products too, so they come first."""
LONGEST = 25


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """One execution."""

    name: str
    start_us: float
    end_us: float

    @property
    def is_communication(self) -> bool:
        return "nccl" in self.name


def kernels(trace: Path) -> list[Kernel]:
    """Those of a trace in Chrome's format."""
    return [
        Kernel(name=event["name"], start_us=event["ts"], end_us=event["ts"] + event["dur"])
        for event in json.loads(trace.read_text())["traceEvents"]
        if event.get("cat") in {"kernel", "gpu_memcpy", "gpu_memset"}
    ]


def summary(executed: Sequence[Kernel]) -> dict[str, Any]:
    """Shares are of the time from the first kernel to the end of the last one."""
    window_us = max(each.end_us for each in executed) - min(each.start_us for each in executed)
    by_kind, by_name = Counter[str](), Counter[str]()
    for each in executed:
        by_kind[_kind(each.name)] += each.end_us - each.start_us
        by_name[each.name[:90]] += each.end_us - each.start_us

    def shares(counter: Counter[str]) -> dict[str, float]:
        return {name: round(us / window_us, 4) for name, us in counter.most_common(LONGEST)}

    exposed_us = _exposed_us(executed)
    return {
        "busy_share": round(busy_us(executed) / window_us, 4),
        "overlap": _overlap(executed, exposed_us),
        "exposed_share": shares(exposed_us),
        "share_by_kind": shares(by_kind),
        "longest": shares(by_name),
    }


def _overlap(executed: Sequence[Kernel], exposed_us: Counter[str]) -> float | None:
    """Share of the communication during which something else computes; None without any."""
    communication_us = busy_us(each for each in executed if each.is_communication)
    return round(1 - exposed_us.total() / communication_us, 4) if communication_us else None


def _exposed_us(executed: Sequence[Kernel]) -> Counter[str]:
    """Time of each kind of communication during which nothing else runs."""
    covered = [each for each in executed if not each.is_communication]
    exposed = Counter[str]()
    for name in sorted({each.name for each in executed if each.is_communication}):
        before_us = busy_us(covered)
        covered += [each for each in executed if each.name == name]
        exposed[name[:90]] = busy_us(covered) - before_us
    return exposed


def _kind(name: str) -> str:
    return next((kind for kind, words in KINDS if re.search(words, name)), "other")


def busy_us(executed: Iterable[Kernel]) -> float:
    """Time during which at least one runs."""
    covered_us, reached_us = 0.0, 0.0
    for each in sorted(executed, key=lambda each: each.start_us):
        covered_us += max(0.0, each.end_us - max(each.start_us, reached_us))
        reached_us = max(reached_us, each.end_us)
    return covered_us
