"""NVIDIA's management library behind the door of `device`.

Each call's own return code is looked at, and values are read by the type that comes with them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pynvml as nvml

from kopeck_exporter.device import DeviceError, Readings, Reason, Xid

_REASONS: Mapping[int, Reason] = {
    nvml.NVML_ERROR_LIBRARY_NOT_FOUND: Reason.NO_LIBRARY,
    nvml.NVML_ERROR_DRIVER_NOT_LOADED: Reason.NO_LIBRARY,
    nvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: Reason.NO_LIBRARY,
    nvml.NVML_ERROR_NO_PERMISSION: Reason.NO_PERMISSION,
    nvml.NVML_ERROR_GPU_IS_LOST: Reason.GPU_LOST,
    nvml.NVML_ERROR_RESET_REQUIRED: Reason.GPU_LOST,
    nvml.NVML_ERROR_GPU_NOT_FOUND: Reason.GPU_LOST,
}
_ABSENT = frozenset(
    {
        nvml.NVML_ERROR_NOT_SUPPORTED,
        nvml.NVML_ERROR_FUNCTION_NOT_FOUND,  # an older driver
        nvml.NVML_ERROR_INVALID_ARGUMENT,  # likewise: a field or metric that it does not know
        nvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
        nvml.NVML_ERROR_NO_DATA,
    }
)
_PERCENT = 0.01
_MIB = 2.0**20
_ACTIVITY = {
    nvml.NVML_GPM_METRIC_SM_UTIL: ("sm_utilization_ratio", _PERCENT),
    nvml.NVML_GPM_METRIC_SM_OCCUPANCY: ("sm_occupancy_ratio", _PERCENT),
    nvml.NVML_GPM_METRIC_ANY_TENSOR_UTIL: ("tensor_active_ratio", _PERCENT),
    nvml.NVML_GPM_METRIC_DRAM_BW_UTIL: ("dram_active_ratio", _PERCENT),
}
_TRAFFIC = {
    nvml.NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC: ("nvlink_received", _MIB),
    nvml.NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC: ("nvlink_sent", _MIB),
    nvml.NVML_GPM_METRIC_PCIE_RX_PER_SEC: ("pcie_received", _MIB),
    nvml.NVML_GPM_METRIC_PCIE_TX_PER_SEC: ("pcie_sent", _MIB),
}
"""Of the board, so not for a MIG instance. NVML's field values for PCIe have 32 bits only."""

_ANY_INSTANCE = 0xFFFFFFFF
_THROTTLING = {
    nvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP: "power_cap",
    nvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN: "sw_thermal",
    nvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN: "hw_thermal",
    nvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN: "hw_power_brake",
    nvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_SYNC_BOOST: "sync_boost",
}
_VALUE_FIELDS = {
    nvml.NVML_VALUE_TYPE_DOUBLE: "dVal",
    nvml.NVML_VALUE_TYPE_UNSIGNED_INT: "uiVal",
    nvml.NVML_VALUE_TYPE_UNSIGNED_LONG: "ulVal",
    nvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: "ullVal",
    nvml.NVML_VALUE_TYPE_SIGNED_LONG_LONG: "sllVal",
    nvml.NVML_VALUE_TYPE_SIGNED_INT: "siVal",
    nvml.NVML_VALUE_TYPE_UNSIGNED_SHORT: "usVal",
}


class NvmlGpu:
    """A GPU, or with `instance_id` a MIG instance, whose samples its parent takes."""

    def __init__(self, index: int, handle: Any, parent: Any, instance_id: int | None) -> None:
        """Raises DeviceError."""
        self.index = index
        self._handle = handle
        self._parent = parent
        self._instance_id = instance_id
        self.uuid = _called(nvml.nvmlDeviceGetUUID, handle)
        self.model = _called(nvml.nvmlDeviceGetName, parent)
        self._metrics = _ACTIVITY if instance_id is not None else _ACTIVITY | _TRAFFIC
        self.has_activity = _has_activity(parent)
        self._samples: list[Any] = []

    def is_hit_by(self, event: Any) -> bool:
        """Whether an event of the driver is about this one, or about its whole board."""
        board = _called(nvml.nvmlDeviceGetUUID, event.device)
        if board != _called(nvml.nvmlDeviceGetUUID, self._parent):
            return False
        return self._instance_id is None or event.gpuInstanceId in {
            _ANY_INSTANCE,
            self._instance_id,
        }

    def register_xids(self, events: Any) -> None:
        try:
            nvml.nvmlDeviceRegisterEvents(self._parent, nvml.nvmlEventTypeXidCriticalError, events)
        except nvml.NVMLError as error:
            if error.value not in _ABSENT:
                raise _device_error(error) from error

    def take_sample(self) -> None:
        spare = self._samples.pop(0) if len(self._samples) == 2 else _new_sample()
        try:
            if self._instance_id is None:
                _called(nvml.nvmlGpmSampleGet, self._parent, spare)
            else:
                _called(nvml.nvmlGpmMigSampleGet, self._parent, self._instance_id, spare)
        except DeviceError:
            _called(nvml.nvmlGpmSampleFree, spare)
            raise
        self._samples.append(spare)

    def activity(self) -> Readings:
        asked = nvml.c_nvmlGpmMetricsGet_t()
        asked.version = nvml.NVML_GPM_METRICS_GET_VERSION
        asked.sample1, asked.sample2 = self._samples
        asked.numMetrics = len(self._metrics)
        for place, metric_id in enumerate(self._metrics):
            asked.metrics[place].metricId = metric_id
        _called(nvml.nvmlGpmMetricsGet, asked)
        answers = (asked.metrics[place] for place in range(len(self._metrics)))
        return dict(_each_metric(answers, self._metrics.values()))

    def condition(self) -> Readings:
        instance = {"memory_used_bytes": lambda: _memory_used_bytes(self._handle)}
        board: dict[str, Callable[[], float]] = {
            "gpu_utilization_ratio": lambda: _utilization(self._handle),
            "sm_clock_hertz": lambda: _sm_clock_hertz(self._handle),
            "power_watts": lambda: nvml.nvmlDeviceGetPowerUsage(self._handle) / 1e3,
            "temperature_celsius": lambda: _temperature(self._handle),
        }
        wanted = instance if self._instance_id is not None else instance | board
        return dict(_each_call(wanted))

    def throttled_seconds(self) -> Readings:
        if self._instance_id is not None:
            return {}
        values = _called(nvml.nvmlDeviceGetFieldValues, self._handle, list(_THROTTLING))
        read = {_THROTTLING[each.fieldId]: _field_value(each) for each in values}
        return {
            name: value if isinstance(value, Reason) else value / 1e9
            for name, value in read.items()
            if value is not None
        }

    def energy_joules(self) -> float | None:
        if self._instance_id is not None:
            return None
        fields = [nvml.NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION]
        [answer] = _called(nvml.nvmlDeviceGetFieldValues, self._handle, fields)
        value = _field_value(answer)
        if isinstance(value, Reason):
            raise DeviceError(value)
        return None if value is None else value / 1e3


class Nvml:
    """The driver. Initialised once: to try again and again is how calls come to hang."""

    def __init__(self) -> None:
        """Raises DeviceError."""
        _called(nvml.nvmlInit)
        self._gpus = list(_all_gpus())
        self._events: Any = None

    def gpus(self) -> Sequence[NvmlGpu]:
        return self._gpus

    def next_xid(self, seconds: float) -> Xid | None:
        if self._events is None:
            self._events = self._registered()
        try:
            event = nvml.nvmlEventSetWait_v2(self._events, int(seconds * 1000))
        except nvml.NVMLError_Timeout:
            return None
        except nvml.NVMLError as error:
            raise _device_error(error) from error
        uuids = tuple(gpu.uuid for gpu in self._gpus if gpu.is_hit_by(event))
        return Xid(int(event.eventData), uuids)

    def _registered(self) -> Any:
        """Events of XIDs, from the GPUs that tell them."""
        events = _called(nvml.nvmlEventSetCreate)
        for gpu in self._gpus:
            gpu.register_xids(events)
        return events


def _all_gpus() -> Iterator[NvmlGpu]:
    """In the place of a GPU that is cut into MIG instances, those of them that are ours."""
    index = 0
    for each in range(_called(nvml.nvmlDeviceGetCount)):
        board = _called(nvml.nvmlDeviceGetHandleByIndex, each)
        if not _is_cut(board):
            yield NvmlGpu(index, board, board, None)
            index += 1
            continue
        for instance in _instances(board):
            instance_id = _called(nvml.nvmlDeviceGetGpuInstanceId, instance)
            yield NvmlGpu(index, instance, board, instance_id)
            index += 1


def _is_cut(board: Any) -> bool:
    try:
        current, _ = nvml.nvmlDeviceGetMigMode(board)
    except nvml.NVMLError:  # before Ampere
        return False
    return bool(current == nvml.NVML_DEVICE_MIG_ENABLE)


def _instances(board: Any) -> Iterator[Any]:
    for place in range(_called(nvml.nvmlDeviceGetMaxMigDeviceCount, board)):
        try:
            yield nvml.nvmlDeviceGetMigDeviceHandleByIndex(board, place)
        except nvml.NVMLError:  # a free place, or another tenant's
            continue


def _new_sample() -> Any:
    return _called(nvml.nvmlGpmSampleAlloc)


def _has_activity(board: Any) -> bool:
    """Also where it is refused, so that the refusal is counted when it is asked for."""
    try:
        return bool(nvml.nvmlGpmQueryDeviceSupport(board).isSupportedDevice)
    except nvml.NVMLError as error:
        return bool(error.value == nvml.NVML_ERROR_NO_PERMISSION)


def _each_metric(
    answers: Iterable[Any], named: Iterable[tuple[str, float]]
) -> Iterator[tuple[str, float | Reason]]:
    for answer, (name, scale) in zip(answers, named, strict=True):
        if answer.nvmlReturn == nvml.NVML_SUCCESS:
            yield name, answer.value * scale
        elif answer.nvmlReturn not in _ABSENT:
            yield name, _REASONS.get(answer.nvmlReturn, Reason.UNKNOWN_ERROR)


def _each_call(
    calls: Mapping[str, Callable[[], float]],
) -> Iterator[tuple[str, float | Reason]]:
    for name, call in calls.items():
        try:
            yield name, call()
        except nvml.NVMLError as error:
            if error.value not in _ABSENT:
                yield name, _device_error(error).reason


def _field_value(answer: Any) -> float | Reason | None:
    if answer.nvmlReturn in _ABSENT:
        return None
    if answer.nvmlReturn != nvml.NVML_SUCCESS:
        return _REASONS.get(answer.nvmlReturn, Reason.UNKNOWN_ERROR)
    name = _VALUE_FIELDS.get(answer.valueType)
    return Reason.UNKNOWN_ERROR if name is None else float(getattr(answer.value, name))


def _memory_used_bytes(handle: Any) -> float:
    """Of programs: what the driver keeps for itself is left out."""
    return float(nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2).used)


def _utilization(handle: Any) -> float:
    return float(nvml.nvmlDeviceGetUtilizationRates(handle).gpu) * _PERCENT


def _sm_clock_hertz(handle: Any) -> float:
    return float(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)) * 1e6


def _temperature(handle: Any) -> float:
    return float(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU))


def _called(call: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return call(*arguments)
    except nvml.NVMLError as error:
        raise _device_error(error) from error


def _device_error(error: Any) -> DeviceError:
    return DeviceError(_REASONS.get(error.value, Reason.UNKNOWN_ERROR))
