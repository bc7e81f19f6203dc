"""`python3 -m kopeck_exporter.sampler ORIGIN`: reads GPUs and CPU throttling where they are seen.

A process of its own that nobody waits for, since a call to the driver can hang so that no signal
ends it; what reads is a child of it, which a fault of the driver's library can take along. Every
second that sends all that it knows to the exporter's socket. ORIGIN is the container that it runs
in, `trainer` or `sidecar`.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from threading import Thread
from time import monotonic
from typing import Any

from kopeck_exporter.cgroup import ROOT, read_cpu_throttling
from kopeck_exporter.device import DeviceError, Driver, Reason
from kopeck_exporter.errors import ErrorCounts, Fault
from kopeck_exporter.gpu_sampling import Clock, GpuSampling, fault_of
from kopeck_exporter.report_socket import ReportSocket
from kopeck_exporter.restarts import begun_again
from kopeck_exporter.sampler_report import KIND, VERSION
from kopeck_exporter.visible_devices import visible
from kopeck_exporter.xids import XidCounts

ORIGINS = ("trainer", "sidecar")
SEND_SECONDS = 1.0
OPEN_SECONDS = 60.0
"""Far above what the driver takes to start, which is seconds."""


class Sampler:
    """What one process knows: `message` never waits for the driver."""

    def __init__(  # noqa: PLR0913  whose it is, what it reads, and by which clock
        self,
        origin: str,
        open_driver: Callable[[], Driver] | None,
        *,
        visible_devices: str | None = None,
        root: Path = ROOT,
        clock: Clock = monotonic,
        deaths: int = 0,
    ) -> None:
        """Without `open_driver` no GPU is sampled. `root` is that of the file system.

        `deaths` is how many samplers died here before this one.
        """
        self._origin = origin
        self._open_driver = open_driver
        self._visible_devices = visible_devices
        self._root = root
        self._clock = clock
        self._deaths = deaths
        self._errors = ErrorCounts()
        self._samplings: list[GpuSampling] = []
        self._xids: XidCounts | None = None
        self._opening_since: float | None = None
        self._sequence = 0

    def start(self) -> None:
        """Begin to read GPUs, in threads that end with the process."""
        if self._open_driver is not None:
            self._opening_since = self._clock()
            _run_aside(partial(self._read_gpus, self._open_driver))

    def message(self, dropped: int = 0) -> dict[str, Any]:
        """All that is known now; what is unknown has no field.

        `dropped` messages before it got to no exporter.
        """
        self._sequence += 1
        message = {
            "v": VERSION,
            "kind": KIND,
            "origin": self._origin,
            "seq": self._sequence,
            "time": time.time(),
            "gpus": [self._gpu(each) for each in self._samplings],
            "cpu": self._cpu() if self._origin == "trainer" else None,
            "errors": self._error_counts(dropped),
        }
        return {name: value for name, value in message.items() if value is not None}

    def _read_gpus(self, open_driver: Callable[[], Driver]) -> None:
        try:
            driver = open_driver()
            gpus = visible(driver.gpus(), self._visible_devices)
        except DeviceError as error:
            self._errors.count(fault_of(error.reason))
            _say(f"GPUs are not sampled: {error}")
            return
        finally:
            self._opening_since = None
        for reason in driver.left_out():
            self._errors.count(fault_of(reason))
            _say(f"a GPU is not sampled: {reason}")
        self._xids = XidCounts(driver, self._errors)
        self._samplings = [GpuSampling(gpu, self._errors, self._clock) for gpu in gpus]
        for sampling in self._samplings:
            _run_aside(sampling.run)
        _run_aside(self._xids.listen)

    def _gpu(self, sampling: GpuSampling) -> dict[str, Any]:
        gpu = sampling.gpu
        named = {"gpu": gpu.index, "uuid": gpu.uuid, "model": gpu.model}
        xids = self._xids.of(gpu.uuid) if self._xids else {}
        told = {"xids": {str(number): count for number, count in xids.items()}} if xids else {}
        return named | told | (sampling.known() or {})

    def _cpu(self) -> dict[str, Any] | None:
        try:
            throttling = read_cpu_throttling(self._root)
        except (OSError, ValueError):
            self._errors.count(Fault.CGROUP_UNREADABLE)
            return None
        if throttling is None:
            return None
        return {
            "periods": throttling.periods,
            "throttled_periods": throttling.throttled_periods,
            "throttled_seconds": throttling.throttled_seconds,
        }

    def _error_counts(self, dropped: int) -> dict[str, dict[str, int]]:
        began_at = self._opening_since
        if began_at is not None and self._clock() - began_at > OPEN_SECONDS:
            self._opening_since = None
            self._errors.count(Fault.NVML_HUNG)
        counts = {"socket": {"dropped": dropped}} if dropped else {}
        if self._deaths:
            counts[Fault.SAMPLER_DIED.source] = {Fault.SAMPLER_DIED.reason: self._deaths}
        for fault, count in self._errors.by_fault().items():
            counts.setdefault(fault.source, {})[fault.reason] = count
        return counts


def main() -> int:
    """Until the process that started this one is gone."""
    origin = sys.argv[1] if len(sys.argv) == 2 else ""
    if origin not in ORIGINS:
        _say("say which container this is: `trainer` or `sidecar`")
        return 2
    begun_again(partial(_sample, origin, os.getpid()), _say)
    os._exit(0)  # the child may be in a call that never returns, and a join would wait for it


def _sample(origin: str, parent: int, deaths: int) -> None:
    sampler = Sampler(
        origin,
        open_nvml if samples_gpus(origin, os.environ, ROOT) else None,
        visible_devices=os.environ.get("CUDA_VISIBLE_DEVICES"),
        deaths=deaths,
    )
    report_until_orphaned(sampler, os.environ["KOPECK_SOCKET"], parent)
    os._exit(0)  # a thread may be in a call that never returns


def report_until_orphaned(sampler: Sampler, socket_path: str, parent: int) -> None:
    """Until the process `parent`, which started this one, is gone."""
    sampler.start()
    reports = ReportSocket(socket_path)
    while os.getppid() == parent:
        reports.send(json.dumps(sampler.message(reports.dropped)).encode())
        time.sleep(SEND_SECONDS)


def samples_gpus(origin: str, environ: Mapping[str, str], root: Path) -> bool:
    """One of the two containers, and only where there are GPUs."""
    chosen = environ.get("KOPECK_GPU_SAMPLING", "trainer")
    return chosen == origin and any(root.glob("dev/nvidia[0-9]*"))


def open_nvml() -> Driver:
    """Raises DeviceError."""
    try:
        from kopeck_exporter.nvml import Nvml  # noqa: PLC0415  only where there are GPUs
    except ImportError as missing:
        raise DeviceError(Reason.NO_LIBRARY) from missing
    return Nvml()


def _run_aside(work: Callable[[], None]) -> None:
    Thread(target=work, daemon=True).start()


def _say(sentence: str) -> None:
    sys.stderr.write(f"kopeck: {sentence}\n")


if __name__ == "__main__":
    sys.exit(main())
