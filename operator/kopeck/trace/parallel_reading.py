"""The ranks of a job from their files, on all cores."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TypeVar

from kopeck.trace.files import TraceFile, is_packed
from kopeck.trace.hta import HtaFigures, hta_figures
from kopeck.trace.rank_reader import read_rank, read_rank_on_cores
from kopeck.trace.sharing import shared_out
from kopeck.trace.summary import RankSummary, summarise

WORTH_PROCESSES_BYTES = 32 * 2**20
"""Of text; less is read before another process has started."""
_PACKED = 10
"""About how much shorter gzip makes a trace."""

Measured = TypeVar("Measured")
Told = Callable[[], None]


def read_summaries(
    files: Sequence[TraceFile], told: Told, *, least_bytes: int = WORTH_PROCESSES_BYTES
) -> list[RankSummary]:
    """Each rank measured, in the order of the files; `told` is called after each.

    Several files with fewer than `least_bytes` of text in all are read by this process. Raises
    ConfigError for a file that is no trace.
    """
    if len(files) == 1 and (cores := _cores()) > 1:
        with _pool(cores - 1) as pool:
            trace = read_rank_on_cores(files[0], pool, cores)
            pool.shutdown(wait=False)  # The others end while this one measures.
            summary = summarise(trace)
        told()
        return [summary]
    return _each(_summary_of, files, told, least_bytes)


def read_hta_figures(files: Sequence[TraceFile], told: Told) -> list[HtaFigures | None]:
    """The same, by HTA's rules."""
    return _each(_hta_figures_of, files, told, WORTH_PROCESSES_BYTES)


def _summary_of(file: TraceFile) -> RankSummary:
    return summarise(read_rank(file))


def _hta_figures_of(file: TraceFile) -> HtaFigures | None:
    return hta_figures(read_rank(file, everything=True))


def _each(
    measure: Callable[[TraceFile], Measured],
    files: Sequence[TraceFile],
    told: Told,
    least_bytes: int,
) -> list[Measured]:
    cores = min(_cores(), len(files))
    if cores == 1 or sum(map(_text_bytes, files)) < least_bytes:
        measured = []
        for file in files:
            measured.append(measure(file))
            told()
        return measured
    with _pool(cores - 1) as pool:
        return shared_out(pool, cores - 1, measure, files, told)


def _pool(processes: int) -> ProcessPoolExecutor:
    # A fork would copy the locks of whatever threads run, such as that of a progress bar.
    return ProcessPoolExecutor(processes, mp_context=get_context("spawn"))


def _cores() -> int:
    return len(os.sched_getaffinity(0))


def _text_bytes(file: TraceFile) -> int:
    return file.path.stat().st_size * (_PACKED if is_packed(file) else 1)
