"""What is known of the worker's GPUs and CPU limit: the last word of each sampler, while fresh."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from threading import Lock

from kopeck_exporter.dcgm import Dcgm
from kopeck_exporter.errors import Fault
from kopeck_exporter.sampler_report import CpuReport, GpuReport, Origin, SamplerReport

STALE_SECONDS = 10.0
"""A sampler that lives reports every second."""


@dataclass(frozen=True, slots=True)
class _Heard:
    report: SamplerReport
    connection: int
    received_seconds: float

    def is_fresh(self, now_seconds: float) -> bool:
        return now_seconds - self.received_seconds <= STALE_SECONDS


class Devices:
    """One thread receives, others read. Times are on the monotonic clock."""

    def __init__(self, dcgm: Dcgm | None = None) -> None:
        self._dcgm = dcgm
        self._heard: dict[Origin, _Heard] = {}
        self._lock = Lock()

    def receive(self, report: SamplerReport, connection: int, now_seconds: float) -> None:
        """Take in a report; `connection` numbers the senders in the order of their arrival."""
        with self._lock:
            last = self._heard.get(report.origin)
            if last is None or (connection, report.sequence) > (
                last.connection,
                last.report.sequence,
            ):
                self._heard[report.origin] = _Heard(report, connection, now_seconds)

    def gpus(self, now_seconds: float, uuids_of_ranks: Collection[str]) -> list[GpuReport]:
        """By index. Of those that the sidecar sees, only the ones that ranks say they use."""
        in_trainer = self._fresh("trainer", now_seconds)
        in_sidecar = self._fresh("sidecar", now_seconds)
        known = {gpu.uuid: gpu for gpu in in_sidecar.gpus if gpu.uuid in uuids_of_ranks}
        known |= {gpu.uuid: gpu for gpu in in_trainer.gpus}
        gpus = sorted(known.values(), key=lambda gpu: gpu.index)
        return [self._dcgm.completed(gpu, now_seconds) for gpu in gpus] if self._dcgm else gpus

    def cpu(self, now_seconds: float) -> CpuReport | None:
        return self._fresh("trainer", now_seconds).cpu

    def errors(self) -> Mapping[Fault, int]:
        """What samplers have counted so far, also those that are gone."""
        with self._lock:
            counted: Counter[Fault] = Counter()
            for heard in self._heard.values():
                counted.update(heard.report.errors)
            return counted

    def _fresh(self, origin: Origin, now_seconds: float) -> SamplerReport:
        """An empty one if there is none."""
        with self._lock:
            heard = self._heard.get(origin)
        if heard is None or not heard.is_fresh(now_seconds):
            return SamplerReport(origin, 0, (), None, {})
        return heard.report
