"""SM activity from a DCGM exporter on the node, for GPUs that NVML does not sample."""

from collections.abc import Mapping
from dataclasses import replace
from http.client import HTTPException
from threading import Event, Lock
from time import monotonic
from typing import Any
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

from kopeck_exporter.errors import ErrorCounts, Fault
from kopeck_exporter.sampler_report import GpuReport

FIELDS: Mapping[str, str] = {
    "DCGM_FI_PROF_SM_ACTIVE": "sm_utilization_ratio",
    "DCGM_FI_PROF_SM_OCCUPANCY": "sm_occupancy_ratio",
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": "tensor_active_ratio",
    "DCGM_FI_PROF_DRAM_ACTIVE": "dram_active_ratio",
}
"""DCGM_FI_PROF_GR_ENGINE_ACTIVE, which it has by default, is not SM utilisation."""

ASK_SECONDS = 15.0
"""It collects every 30 s by default."""

TIMEOUT_SECONDS = 5.0
STALE_SECONDS = 45.0
LARGEST_ANSWER_BYTES = 4 * 2**20

Activity = Mapping[str, Mapping[str, float]]
"""By UUID and the field of `GpuReport`."""


class Dcgm:
    """Asks again and again, in a thread of its own; `completed` is asked by another."""

    def __init__(self, url: str, errors: ErrorCounts) -> None:
        self._url = url
        self._errors = errors
        self._lock = Lock()
        self._activity: Activity = {}
        self._read_at = 0.0

    def ask_for_ever(self) -> None:
        pause = Event()
        while True:
            self.ask()
            pause.wait(ASK_SECONDS)

    def ask(self) -> None:
        """One question; what was known stays for a while if there is no answer."""
        try:
            with urlopen(self._url, timeout=TIMEOUT_SECONDS) as answer:  # noqa: S310  the operator's
                text = answer.read(LARGEST_ANSWER_BYTES).decode()
            activity = read_activity(text)
        except (OSError, HTTPException):
            self._errors.count(Fault.DCGM_UNREACHABLE)
        except ValueError:  # no text either
            self._errors.count(Fault.DCGM_MALFORMED)
        else:
            with self._lock:
                self._activity, self._read_at = activity, monotonic()

    def completed(self, gpu: GpuReport, now_seconds: float) -> GpuReport:
        """With the ratios that DCGM knows where the sampler does not. `now_seconds`: monotonic."""
        with self._lock:
            if now_seconds - self._read_at > STALE_SECONDS:
                return gpu
            known = self._activity.get(gpu.uuid, {})
        missing: dict[str, Any] = {
            name: value for name, value in known.items() if getattr(gpu, name) is None
        }
        return replace(gpu, **missing) if missing else gpu


def read_activity(text: str) -> Activity:
    """Of whole GPUs; MIG instances go by their board's UUID there, so they are left out.

    Raises ValueError for what is no text of Prometheus.
    """
    activity: dict[str, dict[str, float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            name, uuid = FIELDS.get(sample.name), sample.labels.get("UUID")
            if name is None or uuid is None or sample.labels.get("GPU_I_ID"):
                continue
            if 0 <= sample.value <= 1:  # NaN fails the comparison
                activity.setdefault(uuid, {})[name] = sample.value
    return activity
