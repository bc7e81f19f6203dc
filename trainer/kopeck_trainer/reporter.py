"""What a process tells the exporter and the launcher: soon after steps, and while none ends too.

A step waits for neither: a thread beside it sends, and a disk that stalls holds up that alone.
"""

import atexit
import json
import math
import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from time import monotonic
from typing import Any

from kopeck_exporter.report_socket import ReportSocket
from kopeck_trainer.figures import Figures
from kopeck_trainer.phases import PhaseClock
from kopeck_trainer.run_directory import read_json, report_file, warm_file, write_json

HEARTBEAT_SECONDS = 2.0
SHORTEST_INTERVAL_SECONDS = 0.05
"""Between the reports of two steps. Of shorter steps one report tells several: its totals hold all,
and the exporter is not behind."""

LAST_REPORT_SECONDS = 3.0
"""How long the end of a process waits for an exporter that is behind; it looks once a second."""


class Reporter:
    """The figures of this process and the clock of its phases, sent on soon after every step.

    Without a socket and a run directory, outside kopeck, it only counts.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.world_size = int(environ.get("WORLD_SIZE", "1"))
        self._rank = int(environ.get("RANK", "0"))
        self._local_rank = int(environ.get("LOCAL_RANK", "0"))
        self._socket = _socket(environ)
        self._file = _file(environ, self._local_rank)
        self.clock = PhaseClock("startup", since=_unaccounted_since(environ, self._file))
        self._figures = Figures()
        self._sequence = 0
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._is_behind = threading.Event()
        self._closed = threading.Event()

    def start(self) -> None:
        """Report now, and at least every two seconds from now on."""
        if self._socket or self._file:
            threading.Thread(target=self._heartbeat, name="kopeck-report", daemon=True).start()

    def is_warm(self) -> None:
        """Tell the launcher that this rank has compiled what it needs."""
        if self._file:
            with suppress(OSError):  # the next attempt compiles anew
                warm_file(self._file.parent, self._local_rank).touch()

    def close(self) -> None:
        """The last report, which may wait: none after it would make up for it.

        What is left of the process is idle time.
        """
        self._closed.set()
        self.clock.end()
        self._send(partial(ReportSocket.send_last, seconds=LAST_REPORT_SECONDS))

    def update(self, **figures: Any) -> None:
        """Set figures by the names that `Figures` gives them; sent with the next report."""
        with self._lock:
            for name, value in figures.items():
                setattr(self._figures, name, value)

    def step_ended(  # noqa: PLR0913  the figures of one step
        self,
        *,
        samples: int,
        step: int,
        job_samples: int,
        seconds: float,
        loss: float | None,
        is_steady: bool,
    ) -> None:
        """One step of this process, which took `samples` samples and `seconds`.

        It `is_steady` once warm-up is over.
        """
        with self._lock:
            figures = self._figures
            figures.samples += samples
            figures.step, figures.job_samples, figures.loss = step, job_samples, loss
            figures.step_seconds = seconds
            if is_steady:
                figures.add_steady(seconds)
            figures.histogram.add(seconds)
            figures.rate.add(monotonic(), figures.samples)
        self.send_soon()

    @property
    def samples_per_second(self) -> float | None:
        with self._lock:
            return self._figures.rate.samples_per_second()

    @property
    def steady_step_seconds(self) -> float | None:
        """Median of the last steps after the warm-up; None before the first."""
        with self._lock:
            return self._figures.steady_step_seconds

    def send_soon(self) -> None:
        """Wait for nothing."""
        self._is_behind.set()

    def send(self) -> None:
        """Now."""
        self._send(ReportSocket.send)

    def _send(self, by: Callable[[ReportSocket, bytes], None]) -> None:
        """One report at a time, numbered, and left for the launcher too."""
        if not (self._socket or self._file):
            return
        with self._sending:
            self._is_behind.clear()
            with self._lock:
                self._sequence += 1
                report = self._report()
            if self._file:
                with suppress(OSError):  # a full disk does not end the training
                    write_json(self._file, report)
            if self._socket:
                by(self._socket, json.dumps(report).encode())

    def _heartbeat(self) -> None:
        while not self._closed.is_set():
            self.send()
            self._closed.wait(SHORTEST_INTERVAL_SECONDS)
            self._is_behind.wait(HEARTBEAT_SECONDS)

    def _report(self) -> dict[str, Any]:
        """Fields that are unknown are absent."""
        figures = self._figures
        phase_seconds = self.clock.seconds()
        report = {
            "v": 1,
            "rank": self._rank,
            "local_rank": self._local_rank,
            "world_size": self.world_size,
            "seq": self._sequence,
            "time": time.time(),
            "step": figures.step,
            "samples": figures.samples,
            "tokens": figures.tokens,
            "job_samples": figures.job_samples,
            "loss": figures.loss if _is_finite(figures.loss) else None,
            "nonfinite_losses": figures.nonfinite_losses,
            "loss_spikes": figures.loss_spikes,
            "step_seconds": figures.step_seconds,
            "steady_step_seconds": figures.steady_step_seconds,
            "peak_device_bytes": figures.peak_device_bytes,
            "peak_resident_bytes": _peak_resident_bytes(),
            "samples_per_second": figures.rate.samples_per_second(),
            "mean_step_seconds": figures.rate.mean_step_seconds(),
            "step_idle_seconds": figures.rate.idle_seconds(monotonic()),
            "mfu": figures.mfu,
            "step_bucket_counts": figures.histogram.counts,
            "step_seconds_sum": figures.histogram.sum_seconds,
            "jitter_bucket_counts": figures.jitter.counts,
            "jitter_seconds_sum": figures.jitter.sum_seconds,
            "phase": self.clock.decided_phase,
            "phase_seconds": phase_seconds,
            "undecided_seconds": self.clock.undecided_seconds,
            "step_part_seconds": figures.step_part_seconds,
            "compile_mode": figures.compile_mode,
            "compile_seconds": phase_seconds["compile"] if figures.compile_mode else None,
            "compile_decision": figures.compile_decision,
            "graph_breaks": figures.graph_breaks,
            "recompiles": figures.recompiles,
            "recompile_reasons": figures.recompile_reasons,
            "compile_cache_hits": figures.compile_cache_hits,
            "compile_cache_misses": figures.compile_cache_misses,
            "cudagraph_skips": figures.cudagraph_skips,
            "eager_fallbacks": figures.eager_fallbacks,
            "numerics_mismatch": figures.numerics_mismatch,
            "checkpoint_step": figures.checkpoint_step,
            "checkpoint_request": figures.checkpoint_request,
            "comm_window": figures.comm_window,
            "window_faults": figures.window_faults,
            "profiler_idle_seconds": figures.profiler_idle_seconds(monotonic()),
            "gpu_uuid": figures.gpu_uuid,
            "dropped_reports": self._socket.dropped if self._socket else None,
        }
        return {name: value for name, value in report.items() if value is not None}


@cache
def process_reporter() -> Reporter:
    """The one reporter of this process, started when it is first asked for.

    The end of a process that this one forks is not its end.
    """
    reporter = Reporter(os.environ)
    reporter.start()
    atexit.register(reporter.close)
    os.register_at_fork(after_in_child=partial(atexit.unregister, reporter.close))
    return reporter


def _unaccounted_since(environ: Mapping[str, str], file: Path | None) -> float:
    """When this rank's time began that nobody has reported, on the monotonic clock.

    It is the start of the launcher, or the last report of a process that this rank was before.
    """
    now = monotonic()
    began = min(now, float(environ.get("KOPECK_STARTED_AT", now)))
    before = read_json(file).get("time") if file else None
    if not isinstance(before, float):
        return began
    return min(now, max(began, now - (time.time() - before)))


def _socket(environ: Mapping[str, str]) -> ReportSocket | None:
    path = environ.get("KOPECK_SOCKET")
    return ReportSocket(path) if path else None


def _file(environ: Mapping[str, str], local_rank: int) -> Path | None:
    directory = environ.get("KOPECK_RUN_DIR")
    return report_file(Path(directory), local_rank) if directory else None


def _peak_resident_bytes() -> int | None:
    """The most that this process had in the host's memory; None where Linux does not tell.

    Not by getrusage: its maximum counts what the process had that started this one, too.
    """
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return None
    found = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    return int(found[1]) * 1024 if found else None


def _is_finite(number: float | None) -> bool:
    return number is not None and math.isfinite(number)  # JSON knows no NaN
