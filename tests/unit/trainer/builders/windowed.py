"""The toy with windows soon and often, and with the faults in them that a test plants."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import toy
from torch._C._distributed_c10d import TCPStore
from torch.utils.data import default_collate

from kopeck.local.port import free_port
from kopeck_trainer import TrainConfig, TrainingTask
from kopeck_trainer.windows import conversation, exchange, period
from kopeck_trainer.windows.analysis import Analysis
from kopeck_trainer.windows.exchange import Exchange
from kopeck_trainer.windows.recorder import Recorder
from kopeck_trainer.windows.recording import Windows
from kopeck_trainer.windows.wish import WindowWish

LATE_RANK = 1


def build(config: TrainConfig) -> TrainingTask:
    """`spec.parameters.faults` are planted in window after window, on every rank."""
    told = config.parameters
    period.FIRST_SECONDS = 0.1
    period.PERIODS_PER_COST = 0.0
    # What is not planted is not to happen, however busy the machine is.
    exchange.GATHER_SECONDS = exchange.ANSWER_SECONDS = conversation.DEADLINE_SECONDS = 300.0
    _plant(iter(told.get("faults", [])))
    _wait_for_both_ranks(Path(os.environ["KOPECK_RUN_DIR"]))

    def collate(samples: list[Any]) -> Any:
        time.sleep(told.get("lateSeconds", 0.0) if _rank() == LATE_RANK else 0.0)
        return default_collate(samples)

    return replace(toy.build(config), collate=collate)


def _rank() -> int:
    return int(os.environ["RANK"])


def _plant(faults: Iterator[str]) -> None:
    begin, planted = Windows._begin, ExitStack()

    def begin_with_fault(windows: Windows, step: int) -> None:
        fault = next(faults, "none")
        sys.stderr.write(f"rank {_rank()}: {fault} in the window after step {step}\n")
        sys.stderr.flush()
        planted.close()
        for each in FAULTS[fault]():
            planted.enter_context(each)
        begin(windows, step)

    Windows._begin = begin_with_fault  # type: ignore[method-assign]


def _wait_for_both_ranks(run_directory: Path) -> None:
    """No window begins before the last one is measured on both."""
    begin, run, is_set = Analysis.begin, Analysis._run, WindowWish.is_set
    measuring = run_directory / f"measuring-{_rank()}"

    def begin_to_measure(analysis: Analysis, *window: Any) -> None:
        measuring.touch()
        begin(analysis, *window)

    def measure(analysis: Analysis, *window: Any) -> None:
        run(analysis, *window)
        measuring.unlink()

    def is_set_and_free(wish: WindowWish) -> bool:
        return is_set.fget(wish) and not any(run_directory.glob("measuring-*"))

    Analysis.begin = begin_to_measure  # type: ignore[method-assign]
    Analysis._run = measure  # type: ignore[method-assign]

    WindowWish.is_set = property(is_set_and_free)  # type: ignore[method-assign,assignment]


def _nothing() -> list[Any]:
    return []


def _profiler() -> list[Any]:
    return [patch.object(Recorder, "warm_up", side_effect=RuntimeError("CUPTI is taken"))]


def _truncated() -> list[Any]:
    return [_after_end(lambda trace: os.truncate(trace, trace.stat().st_size // 2))]


def _missing() -> list[Any]:
    return [_after_end(Path.unlink)]


def _after_end(harm: Callable[[Path], None]) -> Any:
    end = Recorder.end

    def end_and_harm(recorder: Recorder, trace: Path) -> None:
        end(recorder, trace)
        harm(trace)

    return patch.object(Recorder, "end", end_and_harm)


def _killed() -> list[Any]:
    return [patch.object(conversation, "MODULE", "killed_analyser")]


def _hung() -> list[Any]:
    return [
        patch.object(conversation, "MODULE", "hung_analyser"),
        patch.object(conversation, "DEADLINE_SECONDS", 0.5),
    ]


def _store_gone() -> list[Any]:
    def nowhere(_: Exchange) -> TCPStore:
        timeout = timedelta(seconds=0.5)
        return TCPStore("127.0.0.1", free_port(), is_master=False, timeout=timeout)

    return [patch.object(Exchange, "_connected", nowhere)]


def _silent() -> list[Any]:
    """Rank 1 says nothing, and nobody waits for it for long."""
    impatient = patch.object(exchange, "GATHER_SECONDS", 0.5)
    return [impatient, *(_profiler() if _rank() == LATE_RANK else [])]


FAULTS: dict[str, Callable[[], list[Any]]] = {
    "none": _nothing,
    "profiler": _profiler,
    "truncated": _truncated,
    "missing": _missing,
    "killed": _killed,
    "hung": _hung,
    "store_gone": _store_gone,
    "silent": _silent,
}
