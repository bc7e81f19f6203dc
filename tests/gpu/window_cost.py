"""`python -m tests.gpu.window_cost`: what exporter, sampler and trace windows cost a training.

All GPUs of the machine. Blocks with exporter and sampler and without, in turn (ABBA), in one
training; a window at the middle of each pair of blocks with them, a minute apart. Steps between
windows are compared in pairs of blocks, those after a window with those before it, and each
window's cost is taken alone and spread over the period. Six minutes.
"""

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from threading import Event, Thread
from time import monotonic, sleep
from typing import Any

import torch

from kopeck.local.port import free_port
from kopeck_trainer.config import ProfileConfig
from kopeck_trainer.windows.period import LEAST_SECONDS_ON_GPUS, period_seconds
from tests.gpu.kept import bar, keep, say
from tests.unit.exporter.exporter_process import environment, start
from tests.unit.exporter.reporting import get
from tests.waiting import eventually

GPUS = torch.cuda.device_count()
BLOCK_SECONDS = 15.0
UNSETTLED_SECONDS = 4.0
"""Of a block, in which processes start or a window is recorded: not compared."""
BLOCKS = ("off", "on", "window", "off") * 4
"""In `window` the exporter and sampler are on too, and a window is recorded at its begin."""
STUDENT_QUANTILES = {4: 3.182, 8: 2.365}
"""Of 97.5 %, by the number of pairs: intervals of 95 %."""
SCRAPE_SECONDS = 1.0
START_SECONDS = 240
MOST_SLOWDOWN = 0.005

CONFIG: dict[str, Any] = {
    "entrypoint": "tests.gpu.llama:build",
    "training": {
        "steps": 1_000_000,
        "globalBatchSize": 4 * GPUS,
        "microBatchSize": 4,
        "maxGradNorm": 1.0,
        "compile": {"mode": "default"},
    },
}


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        measured = measure(Path(folder), CONFIG)
    print(json.dumps(measured), file=sys.stderr, flush=True)
    return keep(f"window_cost_{GPUS}_gpus", GPUS, {**measured, "bars": bars(measured)})


def bars(measured: dict[str, Any]) -> dict[str, Any]:
    between = measured["slowdown between windows"]["interval"][1]
    lasting = measured["later windows"]["slowest seconds"]
    default, shortest = measured["periods"]
    return {
        "slowdown, upper end, every ten minutes": bar(
            between + lasting / default, "<=", MOST_SLOWDOWN
        ),
        "cost of windows over the shortest period": bar(lasting / shortest, "<=", MOST_SLOWDOWN),
        "steps after a window over those before": bar(
            measured["after over before"]["mean"], "<=", 1 + MOST_SLOWDOWN
        ),
        "windows lost": bar(measured["faults"], "==", 0),
        "windows": bar(len(measured["windows"]), "==", BLOCKS.count("window")),
    }


def measure(folder: Path, config: dict[str, Any]) -> dict[str, Any]:
    """Of one training."""
    with _training(folder, config) as end:
        spans = [_block(folder, block) for block in BLOCKS]
        faults = _report(folder).get("window_faults", {})
        end()
    told = json.loads((folder / "0.json").read_text())
    seconds = [_mean_step(told["ends"], *span) for span in spans]
    by_block = list(zip(BLOCKS, seconds, strict=True))
    without = [mean for block, mean in by_block if block == "off"]
    with_it = [mean for block, mean in by_block if block != "off"]
    before, after = with_it[0::2], with_it[1::2]
    windows = [
        each | {"counted_seconds": _lost_seconds(told["ends"], each)} for each in told["windows"]
    ]
    slowest = max(max(each["cost_seconds"], each["counted_seconds"]) for each in windows[1:])
    default = ProfileConfig.every_seconds or 0
    return {
        "slowdown between windows": _ratios(with_it, without),
        "after over before": _ratios(after, before, minus=0.0),
        "windows": [
            {
                "seconds lost, by the trainer": round(each["cost_seconds"], 5),
                "seconds lost, by the ends of steps": round(each["counted_seconds"], 5),
            }
            for each in windows
        ],
        "later windows": {"slowest seconds": round(slowest, 5)},
        "periods": [
            period_seconds(each, slowest, is_on_gpu=True)
            for each in (default, LEAST_SECONDS_ON_GPUS)
        ],
        "faults": sum(faults.values()),
        "step_seconds": [round(each, 6) for each in seconds],
        "blocks": list(BLOCKS),
    }


@contextmanager
def _training(folder: Path, config: dict[str, Any]) -> Iterator[Any]:
    """One that is past its compilation; what it yields asks it to end and waits."""
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "run").mkdir()
    port = free_port()
    ranks = [_start(folder, rank, port) for rank in range(GPUS)]

    def end() -> None:
        for rank in ranks:
            rank.send_signal(signal.SIGTERM)
        assert [rank.wait(60) for rank in ranks] == [0] * GPUS, _output(folder)

    def steps_are_steady() -> None:
        if any(rank.poll() is not None for rank in ranks):
            raise RuntimeError(_output(folder))
        assert _report(folder).get("steady_step_seconds") is not None, _output(folder)

    try:
        (folder / "told").touch()
        eventually(steps_are_steady, seconds=START_SECONDS)
        (folder / "told").unlink()
        yield end
    finally:
        for rank in ranks:
            rank.kill()


def _start(folder: Path, rank: int, port: int) -> subprocess.Popen[bytes]:
    variables = {
        "KOPECK_CONFIG": folder / "config.json",
        "KOPECK_JOB_UID": "bench",
        "KOPECK_ATTEMPT": 0,
        "KOPECK_RENDEZVOUS_SECONDS": START_SECONDS,
        "KOPECK_HANG_SECONDS": START_SECONDS,
        "KOPECK_RUN_DIR": folder / "run",
        "KOPECK_SOCKET": folder / "s",
        "TEARDOWN_CUPTI": 1,
        "RANK": rank,
        "LOCAL_RANK": rank,
        "WORLD_SIZE": GPUS,
        "LOCAL_WORLD_SIZE": GPUS,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
    }
    with (folder / f"output-{rank}").open("wb") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.gpu.windowed_rank", folder],
            env={**os.environ, **{name: str(value) for name, value in variables.items()}},
            stdout=output,
            stderr=subprocess.STDOUT,
        )


def _output(folder: Path) -> str:
    return "\n".join(file.read_text() for file in sorted(folder.glob("output-*")))


def _report(folder: Path) -> dict[str, Any]:
    """Of rank 0; empty before the first."""
    try:
        report: dict[str, Any] = json.loads((folder / "run" / "rank-0.json").read_text())
    except OSError:
        return {}
    return report


def _block(folder: Path, block: str) -> tuple[float, float]:
    """The span of it that is compared."""
    began = monotonic()
    with ExitStack() as stack:
        if block != "off":
            stack.enter_context(_observed(folder))
            (folder / "told").touch()
        if block == "window":
            (folder / "window").touch()
        sleep(max(0.0, began + BLOCK_SECONDS - monotonic()))
        ended = monotonic()
        (folder / "told").unlink(missing_ok=True)
    say(f"{block}")
    return began + UNSETTLED_SECONDS, ended


@contextmanager
def _observed(folder: Path) -> Iterator[None]:
    """Exporter and sampler run, and the exporter is scraped."""
    told = {"KOPECK_SOCKET": str(folder / "s"), "KOPECK_PROCESSES_PER_WORKER": str(GPUS)}
    command = [sys.executable, "-m", "kopeck_exporter.sampler", "trainer"]
    with start(environment(folder) | told) as exporter:
        assert exporter.stderr is not None
        port = int(exporter.stderr.readline().split()[3])
        with subprocess.Popen(command, env=os.environ | told) as sampler:
            ended = Event()
            scraping = Thread(target=_scrape, args=(port, ended))
            scraping.start()
            try:
                yield
            finally:
                ended.set()
                scraping.join()
                sampler.kill()
                exporter.kill()


def _scrape(port: int, ended: Event) -> None:
    while not ended.wait(SCRAPE_SECONDS):
        get(port, "/metrics")


def _mean_step(ends: Sequence[float], began: float, ended: float) -> float:
    inside = [each for each in ends if began <= each <= ended]
    return statistics.fmean(after - before for before, after in pairwise(inside))


def _lost_seconds(ends: Sequence[float], window: dict[str, float]) -> float:
    """By which the steps around a window took longer than the median of those after it."""
    began, ended = window["began"] - 0.5, window["ended"] + 0.5
    around = [each for each in ends if began <= each <= ended]
    later = [each for each in ends if ended < each <= ended + BLOCK_SECONDS / 2]
    usual = statistics.median(after - before for before, after in pairwise(later))
    return around[-1] - around[0] - usual * (len(around) - 1)


def _ratios(
    numerators: Sequence[float], denominators: Sequence[float], *, minus: float = 1.0
) -> dict[str, Any]:
    """Mean and an interval of 95 % of the pairs' ratios, less `minus`."""
    ratios = [a / b - minus for a, b in zip(numerators, denominators, strict=True)]
    mean, spread = statistics.fmean(ratios), statistics.stdev(ratios) / len(ratios) ** 0.5
    reach = STUDENT_QUANTILES[len(ratios)] * spread
    say(f"{mean:.5f} ± {reach:.5f}")
    return {
        "mean": round(mean, 6),
        "interval": [round(mean - reach, 6), round(mean + reach, 6)],
    }


if __name__ == "__main__":
    sys.exit(main())
