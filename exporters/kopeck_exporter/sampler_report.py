"""One message of a sampler, and the checks that it passes before anything of it is shown."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from kopeck_exporter.device import DIRECTIONS, THROTTLE_REASONS
from kopeck_exporter.errors import SAMPLER_FAULTS, Fault
from kopeck_exporter.fields import (
    MalformedReportError,
    Message,
    checked_number,
    checked_whole,
    number_if_known,
    ratio_if_known,
    text_if_known,
    whole,
)

KIND = "sampler"
VERSION = 1
MOST_GPUS = 64
"""Eight boards in seven MIG instances each, and some; bounds what a message may cost."""

MOST_XIDS = 32
"""Different numbers of one GPU, of some two hundred; each is a series."""

Origin = Literal["trainer", "sidecar"]

_UUID = re.compile("[A-Za-z0-9/-]{1,80}", re.ASCII)
_FAULTS = {(each.source, each.reason): each for each in SAMPLER_FAULTS}


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuReport:
    """One GPU; what is unknown is None, or has no key. Totals count from the sampler's start."""

    index: int
    uuid: str
    model: str | None
    sm_utilization_ratio: float | None = None
    sm_occupancy_ratio: float | None = None
    tensor_active_ratio: float | None = None
    dram_active_ratio: float | None = None
    gpu_utilization_ratio: float | None = None
    sm_clock_hertz: float | None = None
    memory_used_bytes: float | None = None
    power_watts: float | None = None
    temperature_celsius: float | None = None
    energy_joules: float | None = None
    throttled_seconds: Mapping[str, float]
    nvlink_bytes: Mapping[str, float]
    pcie_bytes: Mapping[str, float]
    xids: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class CpuReport:
    """CPU throttling since the training container started."""

    periods: int
    throttled_periods: int
    throttled_seconds: float


@dataclass(frozen=True, slots=True)
class SamplerReport:
    """All that one sampler knows; `cpu` is None without a CPU limit."""

    origin: Origin
    sequence: int
    gpus: tuple[GpuReport, ...]
    cpu: CpuReport | None
    errors: Mapping[Fault, int]


def read_sampler_report(message: Message) -> SamplerReport:
    """Raises MalformedReportError for anything but a sampler's message of this version."""
    if message.get("v") != VERSION:
        raise MalformedReportError(f"v is not {VERSION}")
    return SamplerReport(
        origin=_origin(message),
        sequence=whole(message, "seq"),
        gpus=_gpus(message),
        cpu=_cpu(message),
        errors=_errors(message),
    )


def _origin(message: Message) -> Origin:
    match message.get("origin"):
        case "trainer":
            return "trainer"
        case "sidecar":
            return "sidecar"
    raise MalformedReportError("origin is neither trainer nor sidecar")


def _gpus(message: Message) -> tuple[GpuReport, ...]:
    gpus = message.get("gpus")
    if not isinstance(gpus, list) or len(gpus) > MOST_GPUS:
        raise MalformedReportError(f"gpus is no list of at most {MOST_GPUS}")
    read = tuple(_gpu(each) for each in gpus)
    if len({gpu.uuid for gpu in read}) < len(read) or len({gpu.index for gpu in read}) < len(read):
        raise MalformedReportError("gpus has two of one index or uuid")
    return read


def _gpu(gpu: Any) -> GpuReport:
    if not isinstance(gpu, dict):
        raise MalformedReportError("gpus has an entry that is no JSON object")
    uuid = gpu.get("uuid")
    if not isinstance(uuid, str) or not _UUID.fullmatch(uuid):
        raise MalformedReportError("uuid is none")
    return GpuReport(
        index=whole(gpu, "gpu"),
        uuid=uuid,
        model=text_if_known(gpu, "model"),
        sm_utilization_ratio=ratio_if_known(gpu, "sm_utilization_ratio"),
        sm_occupancy_ratio=ratio_if_known(gpu, "sm_occupancy_ratio"),
        tensor_active_ratio=ratio_if_known(gpu, "tensor_active_ratio"),
        dram_active_ratio=ratio_if_known(gpu, "dram_active_ratio"),
        gpu_utilization_ratio=ratio_if_known(gpu, "gpu_utilization_ratio"),
        sm_clock_hertz=number_if_known(gpu, "sm_clock_hertz"),
        memory_used_bytes=number_if_known(gpu, "memory_used_bytes"),
        power_watts=number_if_known(gpu, "power_watts"),
        temperature_celsius=number_if_known(gpu, "temperature_celsius"),
        energy_joules=number_if_known(gpu, "energy_joules"),
        throttled_seconds=_numbers_by(gpu, "throttled_seconds", THROTTLE_REASONS),
        nvlink_bytes=_numbers_by(gpu, "nvlink_bytes", DIRECTIONS),
        pcie_bytes=_numbers_by(gpu, "pcie_bytes", DIRECTIONS),
        xids=_xids(gpu),
    )


def _numbers_by(message: Message, name: str, keys: tuple[str, ...]) -> Mapping[str, float]:
    numbers = _object(message, name)
    if not numbers.keys() <= set(keys):
        raise MalformedReportError(f"{name} has a key besides {', '.join(keys)}")
    return {key: checked_number(value, name) for key, value in numbers.items()}


def _xids(message: Message) -> Mapping[int, int]:
    counts = _object(message, "xids")
    if len(counts) > MOST_XIDS or not all(re.fullmatch("[0-9]{1,9}", each) for each in counts):
        raise MalformedReportError(f"xids are no more than {MOST_XIDS} numbers with counts")
    return {int(number): checked_whole(count, "xids") for number, count in counts.items()}


def _cpu(message: Message) -> CpuReport | None:
    if message.get("cpu") is None:
        return None
    cpu = _object(message, "cpu")
    return CpuReport(
        periods=whole(cpu, "periods"),
        throttled_periods=whole(cpu, "throttled_periods"),
        throttled_seconds=checked_number(cpu.get("throttled_seconds"), "throttled_seconds"),
    )


def _errors(message: Message) -> Mapping[Fault, int]:
    counts: dict[Fault, int] = {}
    for source, by_reason in _object(message, "errors").items():
        for reason, count in _object({source: by_reason}, source).items():
            fault = _FAULTS.get((source, reason))
            if fault is None:
                raise MalformedReportError("errors has a source or reason that no sampler has")
            counts[fault] = checked_whole(count, "errors")
    return counts


def _object(message: Message, name: str) -> dict[str, Any]:
    """Empty where there is none."""
    value = message.get(name, {})
    if not isinstance(value, dict):
        raise MalformedReportError(f"{name} is no JSON object")
    return value
