"""NVIDIA's management library behind the door of `device`.

Each call's own return code is looked at, and values are read by the type that comes with them.
Samples and field values are read in turns: NVML 580 has crashed in two threads that read samples.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from ctypes import c_void_p, cast
from dataclasses import dataclass
from typing import Any

import pynvml as nvml

from kopeck_exporter.device import DeviceError, Readings, Reason, Xid
from kopeck_exporter.turns import Turns

TURN_SECONDS = 2.0
"""Longest wait for another GPU's reading, less than what counts as a hang of this one."""

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


@dataclass(frozen=True)
class Board:
    """What is known of it from the start: once it is off the bus it answers no question."""

    handle: Any
    uuid: str


class NvmlGpu:
    """A GPU, or with `instance_id` a MIG instance, whose samples its parent takes."""

    def __init__(
        self, index: int, handle: Any, board: Board, instance_id: int | None, turns: Turns
    ) -> None:
        """`turns` are those of all GPUs. Raises DeviceError."""
        self.index = index
        self.board = board
        self._handle = handle
        self._parent = board.handle
        self._instance_id = instance_id
        self._turns = turns
        self.uuid = board.uuid if instance_id is None else _called(nvml.nvmlDeviceGetUUID, handle)
        self.model = _called(nvml.nvmlDeviceGetName, self._parent)
        self._metrics = _ACTIVITY if instance_id is not None else _ACTIVITY | _TRAFFIC
        self.has_activity = _has_activity(self._parent)
        self._samples: list[Any] = []

    def is_hit_by(self, event: Any) -> bool:
        """Whether an event of the board is about this one, or about the whole board."""
        return self._instance_id is None or event.gpuInstanceId in {
            _ANY_INSTANCE,
            self._instance_id,
        }

    def take_sample(self) -> None:
        with self._turns.taken():
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
        with self._turns.taken():
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
        values = self._field_values(list(_THROTTLING))
        read = {_THROTTLING[each.fieldId]: _field_value(each) for each in values}
        return {
            name: value if isinstance(value, Reason) else value / 1e9
            for name, value in read.items()
            if value is not None
        }

    def energy_joules(self) -> float | None:
        if self._instance_id is not None:
            return None
        [answer] = self._field_values([nvml.NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION])
        value = _field_value(answer)
        if isinstance(value, Reason):
            raise DeviceError(value)
        return None if value is None else value / 1e3

    def _field_values(self, fields: list[int]) -> Sequence[Any]:
        with self._turns.taken():
            answers: Sequence[Any] = _called(nvml.nvmlDeviceGetFieldValues, self._handle, fields)
        return answers


class Nvml:
    """The driver. Initialised once: to try again and again is how calls come to hang."""

    def __init__(self, turn_seconds: float = TURN_SECONDS) -> None:
        """Raises DeviceError where no board can be asked at all."""
        _called(nvml.nvmlInit)
        self.turns = Turns(turn_seconds)
        self._gpus: list[NvmlGpu] = []
        self._left_out: list[Reason] = []
        self._events: Any = None
        self._find_gpus()

    def gpus(self) -> Sequence[NvmlGpu]:
        return self._gpus

    def left_out(self) -> Sequence[Reason]:
        return self._left_out

    def next_xid(self, seconds: float) -> Xid | None:
        """Raises DeviceError also once where a board does not tell XIDs: the others do then."""
        if self._events is None:
            self._register()
        try:
            event = nvml.nvmlEventSetWait_v2(self._events, int(seconds * 1000))
        except nvml.NVMLError_Timeout:
            return None
        except nvml.NVMLError as error:
            self._free_events()  # the next ones leave out the board that has failed
            raise _device_error(error) from error
        board = self._uuid_of(event.device)
        hit = (gpu for gpu in self._gpus if gpu.board.uuid == board and gpu.is_hit_by(event))
        return Xid(int(event.eventData), tuple(gpu.uuid for gpu in hit))

    def _uuid_of(self, handle: Any) -> str:
        """Of a board, by the address that its handle is: off the bus it would not say.

        Only a handle that none of ours has is asked. Raises DeviceError.
        """
        known = {_address(gpu.board.handle): gpu.board.uuid for gpu in self._gpus}
        return known.get(_address(handle)) or str(_called(nvml.nvmlDeviceGetUUID, handle))

    def _find_gpus(self) -> None:
        """A board that does not answer is left out, and has an index all the same."""
        index = 0
        for place in range(_called(nvml.nvmlDeviceGetCount)):
            try:
                found = _gpus_of(place, index, self.turns)
            except DeviceError as error:
                self._left_out.append(error.reason)
                index += 1
            else:
                self._gpus += found
                index += len(found)

    def _register(self) -> None:
        """Events of XIDs, from the boards that tell them."""
        self._events = _called(nvml.nvmlEventSetCreate)
        boards = {gpu.board.uuid: gpu.board for gpu in self._gpus}
        failures = [each for board in boards.values() if (each := _failure(board, self._events))]
        if failures:
            if len(failures) == len(boards):
                self._free_events()
            raise failures[0]

    def _free_events(self) -> None:
        events, self._events = self._events, None
        _called(nvml.nvmlEventSetFree, events)


def _address(handle: Any) -> int | None:
    return cast(handle, c_void_p).value


def _failure(board: Board, events: Any) -> DeviceError | None:
    """Why the XIDs of a board do not come to `events`, unless it has none."""
    try:
        nvml.nvmlDeviceRegisterEvents(board.handle, nvml.nvmlEventTypeXidCriticalError, events)
    except nvml.NVMLError as error:
        return None if error.value in _ABSENT else _device_error(error)
    return None


def _gpus_of(place: int, index: int, turns: Turns) -> list[NvmlGpu]:
    """The board in a place; where it is cut into MIG instances, those of them that are ours.

    The first has the `index`. Raises DeviceError.
    """
    handle = _called(nvml.nvmlDeviceGetHandleByIndex, place)
    board = Board(handle, _called(nvml.nvmlDeviceGetUUID, handle))
    if not _is_cut(handle):
        return [NvmlGpu(index, handle, board, None, turns)]
    return [
        NvmlGpu(index + nth, each, board, _called(nvml.nvmlDeviceGetGpuInstanceId, each), turns)
        for nth, each in enumerate(_instances(handle))
    ]


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
