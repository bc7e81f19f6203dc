"""`python -m tests.gpu.profile_windows`: what windows say of two ranks, against their raw traces.

Two windows of a training, a minute apart, the figures of the last one worked out again from the
kept traces; then one of a training with a rank that is late on purpose: it has to be named, and
what the other one waits has to be its delay. On two GPUs, or on one that the ranks share, where
they also wait for their turns. Four minutes.
"""

import json
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from kopeck.trace.files import trace_files
from kopeck.trace.parallel_reading import read_summaries
from kopeck.trace.report import report_of
from tests.gpu.kept import bar, keep, say
from tests.gpu.late_rank import LATE_RANK
from tests.gpu.raw_trace import RawWindow, raw_window, shortest
from tests.unit.trainer.local_workers import LocalJob
from tests.waiting import eventually

RANKS = 2
GPUS = min(RANKS, torch.cuda.device_count())
LATE_SECONDS = 0.25
WINDOW_SECONDS = 300
"""Until so many windows are there, compilation included."""
RATIOS = ("comm_ratio", "exposed_ratio", "wait_ratio", "overlap_ratio")
DIFFERENCE = 1e-6
"""Relative: both are of whole nanoseconds."""

CONFIG = {
    "entrypoint": "tests.gpu.late_rank:build",
    "training": {
        "steps": 1_000_000,
        "globalBatchSize": 8,
        "microBatchSize": 4,
        "maxGradNorm": 1.0,
        "compile": {"mode": "default"},
    },
}


@dataclass(frozen=True, kw_only=True)
class Windows:
    """The last window of each rank: as its report has it, and its trace."""

    reported: list[dict[str, float]]
    faults: int
    traces: Path


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        even = recorded(Path(folder, "even"), CONFIG, windows=2)
        late = recorded(
            Path(folder, "late"), CONFIG | {"parameters": {"late_seconds": LATE_SECONDS}}, windows=1
        )
        content = {
            "even": _told(even),
            "late": _told(late),
            "bars": _agreement("even", even)
            | _agreement("late", late)
            | _lateness(even, late)
            | {"windows lost": bar(even.faults + late.faults, "==", 0)},
        }
    return keep(f"profile_windows_{GPUS}_gpus", GPUS, content)


def recorded(folder: Path, config: dict[str, Any], *, windows: int) -> Windows:
    """A training until it has had so many windows."""
    folder.mkdir()
    (folder / "tmp").mkdir()
    profile = {"everySeconds": 60, "keep": str(folder / "kept")}
    training = config["training"] | {"profile": profile}
    job = LocalJob(folder, {"TMPDIR": str(folder / "tmp")}, processes_per_worker=GPUS)
    seen: list[set[float]] = [set() for _ in range(RANKS)]

    def output() -> str:
        return "\n".join(worker.output for worker in workers)

    def all_seen() -> None:
        if any(worker.process.poll() is not None for worker in workers):
            raise RuntimeError(output())
        for rank, times in enumerate(seen):
            times.update(_times(_report(folder, rank)))
            kept = folder / "kept" / "uid" / f"rank{rank}.json.gz"
            assert len(times) >= windows, output()
            assert kept.exists(), output()
            assert kept.stat().st_mtime >= max(times), output()

    try:
        workers = job.start(config | {"training": training}, workers=RANKS // GPUS)
        eventually(all_seen, seconds=WINDOW_SECONDS)
        reports = [_report(folder, rank) for rank in range(RANKS)]
        say("\n".join(line for line in output().splitlines() if "window" in line))
        for worker in workers:
            worker.process.send_signal(signal.SIGTERM)
        for worker in workers:
            worker.exit_code()
    finally:
        job.kill_all()
    return Windows(
        reported=[report["comm_window"] for report in reports],
        faults=sum(sum(report.get("window_faults", {}).values()) for report in reports),
        traces=folder / "kept" / "uid",
    )


def _report(folder: Path, rank: int) -> dict[str, Any]:
    """The last one that it left for its launcher; empty before the first."""
    reports = (
        json.loads(file.read_text()) for file in (folder / "tmp").glob("kopeck-*/rank-?.json")
    )
    return next((report for report in reports if report["rank"] == rank), {})


def _times(report: dict[str, Any]) -> set[float]:
    return {report["comm_window"]["time"]} if "comm_window" in report else set()


def _raw(windows: Windows) -> list[RawWindow]:
    return [raw_window(windows.traces / f"rank{rank}.json.gz") for rank in range(RANKS)]


def _told(windows: Windows) -> dict[str, Any]:
    raw = _raw(windows)
    return {
        "reported": [{name: round(rank[name], 6) for name in RATIOS} for rank in windows.reported],
        "window seconds": [round(rank.length / 1e9, 6) for rank in raw],
        "collectives": [len(rank.collectives) for rank in raw],
        "kernels": [len(rank.kernels) for rank in raw],
        "packed trace bytes": [
            file.stat().st_size for file in sorted(windows.traces.glob("*.json.gz"))
        ],
    }


def _agreement(name: str, windows: Windows) -> dict[str, Any]:
    raw = _raw(windows)
    transfers = shortest(raw)
    again = [rank.ratios(transfers) for rank in raw]
    return {
        f"{name}: {ratio}, reported against raw": bar(
            max(
                _difference(reported[ratio], own[ratio])
                for reported, own in zip(windows.reported, again, strict=True)
            ),
            "<=",
            DIFFERENCE,
        )
        for ratio in RATIOS
    }


def _difference(reported: float, own: float) -> float:
    return abs(reported - own) / own if own else abs(reported)


def _lateness(even: Windows, late: Windows) -> dict[str, Any]:
    """Waiting that comes from the delay is what is more than without it."""
    prompt_rank = 1 - LATE_RANK
    before, after = _waits(even), _waits(late)
    planted = _raw(late)[LATE_RANK].pause_seconds
    found = after[prompt_rank] - before[prompt_rank]
    say(f"waits {before} s without, {after} s with a delay of {planted} s")
    return {
        "ranks that kopeck trace names late, without the one that is": bar(
            len(set(_stragglers(late)) ^ {LATE_RANK}), "==", 0
        ),
        "waiting of the late rank over that of the other": bar(
            after[LATE_RANK] / after[prompt_rank], "<=", 0.5
        ),
        "delay in the other rank's waiting, relative error": bar(
            abs(found - planted) / planted, "<=", 0.05
        ),
    }


def _waits(windows: Windows) -> list[float]:
    """Seconds in a window, by rank."""
    return [
        round(rank["wait_ratio"] * raw.length / 1e9, 6)
        for rank, raw in zip(windows.reported, _raw(windows), strict=True)
    ]


def _stragglers(windows: Windows) -> Sequence[int]:
    """As `kopeck trace` names them."""
    files = trace_files([windows.traces], windows.traces)
    return report_of(read_summaries(files, lambda: None).measured).stragglers


if __name__ == "__main__":
    sys.exit(main())
