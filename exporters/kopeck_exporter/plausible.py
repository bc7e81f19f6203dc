"""The ranges that true readings lie in: drivers call it success to answer with sentinels too."""

from collections.abc import Mapping

from kopeck_exporter.device import Readings, Reason

_FULL = 1.01
"""A ratio a little above 1 is one of two clocks that disagree."""

MOST_BY_NAME: Mapping[str, float] = {
    "sm_utilization_ratio": _FULL,
    "sm_occupancy_ratio": _FULL,
    "tensor_active_ratio": _FULL,
    "dram_active_ratio": _FULL,
    "gpu_utilization_ratio": _FULL,
    "nvlink_received": 2e13,
    "nvlink_sent": 2e13,
    "pcie_received": 1e12,
    "pcie_sent": 1e12,
    "sm_clock_hertz": 1e10,
    "memory_used_bytes": 2.0**44,
    "power_watts": 1e4,
    "temperature_celsius": 150.0,
}
"""Several times what any GPU has, ratios excepted; the least is 0."""


def checked(readings: Readings) -> dict[str, float | Reason]:
    """Each reading, or IMPLAUSIBLE in the place of what cannot be true. Ratios end at 1."""
    return {name: _checked(name, value) for name, value in readings.items()}


def _checked(name: str, value: float | Reason) -> float | Reason:
    if isinstance(value, Reason):
        return value
    if not 0 <= value <= MOST_BY_NAME[name]:  # NaN fails the comparison
        return Reason.IMPLAUSIBLE
    return min(value, 1.0) if name.endswith("_ratio") else value
