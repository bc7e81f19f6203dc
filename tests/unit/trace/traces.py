"""Traces for tests: small ones made of events, and real ones where they are at hand."""

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from kopeck.trace.events import RankTrace
from kopeck.trace.files import TraceFile, trace_files
from kopeck.trace.parallel_reading import read_summaries
from kopeck.trace.rank_reader import read_rank
from kopeck.trace.report import Report, report_of
from kopeck.trace.summary import RankSummary, summarise

_DATA = os.environ.get("KOPECK_SHARED_DATA") or Path(__file__).parents[4] / "shared" / "data"
FOLDER = Path(_DATA) / "traces"
BEGIN_US = 1_000_000

needs_shared_traces = pytest.mark.skipif(
    not FOLDER.is_dir(), reason=f"the real traces are not in {FOLDER}"
)

Event = dict[str, Any]


def a_kernel(start_us: float, duration_us: float, name: str = "gemm", **args: Any) -> Event:
    """An event on the GPU, by default a kernel that computes; times from the trace's begin."""
    category = args.pop("cat", "kernel")
    return _event(category, name, start_us, duration_us, 0, 7, {"stream": 7} | args)


def nccl(start_us: float, duration_us: float, kind: str = "AllReduce", **args: Any) -> Event:
    """A kernel that communicates."""
    return a_kernel(start_us, duration_us, f"ncclDevKernel_{kind}_RING_LL(x)", **args)


def all_reduce(start_us: float, duration_us: float, **args: Any) -> Event:
    """One with all that torch tells: 4 MB between two ranks."""
    told = {
        "Collective name": "allreduce",
        "In msg nelems": 1_000_000,
        "Out msg nelems": 1_000_000,
        "Group size": 2,
        "dtype": "Float",
        "Process Group Name": "0",
        "Process Group Ranks": "[0, 1]",
    }
    return nccl(start_us, duration_us, **(told | {"stream": 20} | args))


def a_call(
    start_us: float, duration_us: float, correlation: int, name: str = "cudaLaunchKernel"
) -> Event:
    """A call of the host."""
    return _event("cuda_runtime", name, start_us, duration_us, 1, 1, {"correlation": correlation})


def an_operator(start_us: float, duration_us: float, name: str, cat: str = "cpu_op") -> Event:
    return _event(cat, name, start_us, duration_us, 1, 1, {})


def a_step(number: int, start_us: float, duration_us: float) -> Event:
    return an_operator(start_us, duration_us, f"ProfilerStep#{number}", "user_annotation")


def _event(
    category: str,
    name: str,
    start_us: float,
    duration_us: float,
    process: int,
    thread: int,
    args: dict[str, Any],
) -> Event:
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": process,
        "tid": thread,
        "ts": BEGIN_US + start_us,
        "dur": duration_us,
        "args": args,
    }


def a_trace(*events: Event, rank: int | None = 0, world_size: int = 1, **metadata: Any) -> str:
    """The text of a trace as Kineto writes it, with the metadata before the events."""
    told = {} if rank is None else {"rank": rank, "world_size": world_size}
    head = {"schemaVersion": 1, "distributedInfo": {"backend": "nccl", **told}, **metadata}
    return json.dumps({**head, "traceEvents": list(events), "traceName": "test"}, indent=2)


def written(folder: Path, text: str | bytes, name: str = "rank0.json") -> Path:
    file = folder / name
    content = text.encode() if isinstance(text, str) else text
    file.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return file


def read(text: str | bytes, name: str = "rank0.json", **how: bool) -> RankTrace:
    with TemporaryDirectory() as folder:
        file = written(Path(folder), text, name)
        return read_rank(TraceFile(file, name), **how)


def measured(text: str | bytes) -> RankSummary:
    """One rank, read from a file."""
    return summarise(read(text))


def together(*texts: str) -> Report:
    """Ranks of a job."""
    return report_of([measured(text) for text in texts])


def report_on(*names: str) -> Report:
    """Of real traces."""
    with TemporaryDirectory() as folder:
        return report_of(read_summaries(shared(folder, *names), _silent).measured)


def shared(folder: str, *names: str) -> list[TraceFile]:
    return trace_files([FOLDER / name for name in names], Path(folder))


_silent: Callable[[], None] = lambda: None  # noqa: E731
