"""Metrics of GPUs and of the CPU limit, from what samplers told."""

from collections.abc import Iterator, Mapping, Sequence

from prometheus_client import Metric as Family

from kopeck_exporter import names
from kopeck_exporter.families import Families, Labels
from kopeck_exporter.sampler_report import CpuReport, GpuReport

GAUGES: Mapping[names.Metric, str] = {
    names.SM_UTILIZATION_RATIO: "sm_utilization_ratio",
    names.SM_OCCUPANCY_RATIO: "sm_occupancy_ratio",
    names.TENSOR_ACTIVE_RATIO: "tensor_active_ratio",
    names.DRAM_ACTIVE_RATIO: "dram_active_ratio",
    names.GPU_UTILIZATION_RATIO: "gpu_utilization_ratio",
    names.GPU_SM_CLOCK_HERTZ: "sm_clock_hertz",
    names.GPU_MEMORY_USED_BYTES: "memory_used_bytes",
    names.GPU_POWER_WATTS: "power_watts",
    names.GPU_TEMPERATURE_CELSIUS: "temperature_celsius",
    names.GPU_ENERGY_JOULES_TOTAL: "energy_joules",
}
"""The field of `GpuReport` that each metric is."""

BY_LABEL: Mapping[names.Metric, str] = {
    names.GPU_THROTTLED_SECONDS_TOTAL: "throttled_seconds",
    names.GPU_NVLINK_BYTES_TOTAL: "nvlink_bytes",
    names.GPU_PCIE_BYTES_TOTAL: "pcie_bytes",
    names.GPU_XID_ERRORS_TOTAL: "xids",
}
"""Likewise, with a sample for each key, under the metric's last label."""


def gpu_families(families: Families, gpus: Sequence[GpuReport]) -> Iterator[Family]:
    labelled = [({"gpu": str(gpu.index), "uuid": gpu.uuid}, gpu) for gpu in gpus]
    for metric, name in GAUGES.items():
        values = [(labels, getattr(gpu, name)) for labels, gpu in labelled]
        yield from families.if_any(metric, [each for each in values if each[1] is not None])
    for metric, name in BY_LABEL.items():
        yield from families.if_any(
            metric,
            (
                each
                for labels, gpu in labelled
                for each in _by_key(labels, metric.labels[-1], getattr(gpu, name))
            ),
        )


def cpu_families(families: Families, cpu: CpuReport | None) -> Iterator[Family]:
    if cpu is None:
        return
    yield families.of(names.CPU_THROTTLED_SECONDS_TOTAL, [({}, cpu.throttled_seconds)])
    yield families.of(names.CPU_PERIODS_TOTAL, [({}, cpu.periods)])
    yield families.of(names.CPU_THROTTLED_PERIODS_TOTAL, [({}, cpu.throttled_periods)])


def _by_key(
    labels: Labels, name: str, values: Mapping[str, float] | Mapping[int, int]
) -> Iterator[tuple[Labels, float]]:
    for key, value in values.items():
        yield {**labels, name: str(key)}, value
