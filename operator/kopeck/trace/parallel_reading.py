"""The ranks of a job from their files, on all cores."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from typing import Generic, TypeVar

from kopeck.api.errors import ConfigError
from kopeck.trace.files import TraceFile, size_of
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


@dataclass(frozen=True)
class Ranks(Generic[Measured]):
    """What was measured of each file that is a trace, in the order of the files."""

    files: list[TraceFile]
    measured: list[Measured]
    left_out: tuple[str, ...] = ()
    """In sentences, the files that are no traces."""


def read_summaries(
    files: Sequence[TraceFile], told: Told, *, least_bytes: int = WORTH_PROCESSES_BYTES
) -> Ranks[RankSummary]:
    """Each rank measured; `told` is called after each.

    Several files with fewer than `least_bytes` of text in all are read by this process. Raises
    ConfigError where no file is a trace.
    """
    if len(files) == 1 and (cores := _cores()) > 1:
        with _pool(cores - 1) as pool:
            trace = read_rank_on_cores(files[0], pool, cores)
            pool.shutdown(wait=False)  # The others end while this one measures.
            summary = summarise(trace)
        told()
        return Ranks([*files], [summary])
    return _each(_summary_of, files, told, least_bytes)


def read_hta_figures(files: Sequence[TraceFile], told: Told) -> Ranks[HtaFigures | None]:
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
) -> Ranks[Measured]:
    cores = min(_cores(), len(files))
    if cores == 1 or sum(map(_text_bytes, files)) < least_bytes:
        tried = []
        for file in files:
            tried.append(_tried(measure, file))
            told()
        return _ranks(files, tried)
    with _pool(cores - 1) as pool:
        return _ranks(files, shared_out(pool, cores - 1, partial(_tried, measure), files, told))


def _tried(measure: Callable[[TraceFile], Measured], file: TraceFile) -> Measured | ConfigError:
    """One file that is no trace keeps nobody from the others."""
    try:
        return measure(file)
    except ConfigError as error:
        return error


def _ranks(files: Sequence[TraceFile], tried: Sequence[Measured | ConfigError]) -> Ranks[Measured]:
    pairs = list(zip(files, tried, strict=True))
    refused = [(file, each) for file, each in pairs if isinstance(each, ConfigError)]
    if len(refused) == len(files):
        raise refused[0][1]
    return Ranks(
        files=[file for file, each in pairs if not isinstance(each, ConfigError)],
        measured=[each for each in tried if not isinstance(each, ConfigError)],
        left_out=tuple(
            f"{error.where}: {', '.join((error.wrong, *file.lost))}; it is left out"
            for file, error in refused
        ),
    )


def _pool(processes: int) -> ProcessPoolExecutor:
    # A fork would copy the locks of whatever threads run, such as that of a progress bar.
    return ProcessPoolExecutor(processes, mp_context=get_context("spawn"))


def _cores() -> int:
    return len(os.sched_getaffinity(0))


def _text_bytes(file: TraceFile) -> int:
    try:
        size = size_of(file)
    except ConfigError:
        return 0
    return size.bytes * (_PACKED if size.is_packed else 1)
