"""NVML's own door, over the library's calls.

One GPU off the bus takes nothing else with it, and no two threads are in what crashes then.
"""

from collections.abc import Callable
from ctypes import c_void_p, cast
from dataclasses import dataclass, field
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from kopeck_exporter.device import DeviceError, Reason
from kopeck_exporter.errors import ErrorCounts
from kopeck_exporter.nvml import Nvml, NvmlGpu
from kopeck_exporter.xids import XidCounts

WHOLE_BOARD = 0xFFFFFFFF


@dataclass
class Library:
    """What the calls of pynvml answer: boards by their addresses, of which some are lost."""

    boards: int = 2
    instances: int = 0
    """MIG instances that each board is cut into; their handles follow the board's."""
    lost: set[int] = field(default_factory=set)
    refuses_events: set[int] = field(default_factory=set)
    events: list[Any] = field(default_factory=list)
    """To come: what a wait returns, or raises."""
    open_sets: set[int] = field(default_factory=set)
    sets_made: int = 0
    next_hangs: bool = False
    """The next reading, of those that no two threads may take at once."""
    has_begun: Event = field(default_factory=Event)
    may_end: Event = field(default_factory=Event)
    readings: int = 0
    """Of these, that were begun."""

    def handle_of(self, index: int) -> Any:
        self._answer(index)
        return a_handle(0x1000 * (index + 1))

    def uuid(self, handle: Any) -> str:
        board, instance = place_of(handle)
        self._answer(board)
        return f"MIG-{board}-{instance}" if instance else f"GPU-{board}"

    def name(self, handle: Any) -> str:
        self._answer(place_of(handle)[0])
        return "NVIDIA H200"

    def mig_mode(self, _: Any) -> tuple[int, int]:
        mode = pynvml.NVML_DEVICE_MIG_ENABLE if self.instances else 0
        return mode, mode

    def instance(self, handle: Any, place: int) -> Any:
        self._answer(place_of(handle)[0])
        if place == 0:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)  # another tenant's
        return a_handle(cast(handle, c_void_p).value + place)

    def make_set(self) -> int:
        self.sets_made += 1
        self.open_sets.add(self.sets_made)
        return self.sets_made

    def register(self, handle: Any, _: int, events: int) -> None:
        assert events in self.open_sets
        board, _instance = place_of(handle)
        self._answer(board)
        if board in self.refuses_events:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_UNKNOWN)

    def wait(self, events: int, _: int) -> Any:
        assert events in self.open_sets
        if not self.events:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_TIMEOUT)
        event = self.events.pop(0)
        if isinstance(event, Exception):
            raise event
        return event

    def reading(self, *_: Any) -> None:
        self.readings += 1
        hangs, self.next_hangs = self.next_hangs, False
        if hangs:
            self.has_begun.set()
            self.may_end.wait()

    def field_values(self, _: Any, fields: list[int]) -> list[Any]:
        self.reading()
        return [SimpleNamespace(fieldId=each, nvmlReturn=0, **ONE_SECOND) for each in fields]

    def hit(self, board: int, number: int, instance: int = WHOLE_BOARD) -> None:
        """An event; its handle is an object of its own, as ctypes makes one for each answer."""
        handle = a_handle(0x1000 * (board + 1))
        event = SimpleNamespace(device=handle, eventData=number, gpuInstanceId=instance)
        self.events.append(event)

    def _answer(self, board: int) -> None:
        if board in self.lost:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)


ONE_SECOND = {
    "valueType": pynvml.NVML_VALUE_TYPE_DOUBLE,
    "value": SimpleNamespace(dVal=1e9),
}
"""In the units of both throttling and energy that is more than nothing."""


def a_handle(address: int) -> Any:
    return cast(c_void_p(address), pynvml.c_nvmlDevice_t)


def place_of(handle: Any) -> tuple[int, int]:
    """Board, and place of the instance in it: 0 is the board itself."""
    board, instance = divmod(cast(handle, c_void_p).value or 0, 0x1000)
    return board - 1, instance


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    library = Library()
    calls: dict[str, Callable[..., Any]] = {
        "nvmlInit": lambda: None,
        "nvmlDeviceGetCount": lambda: library.boards,
        "nvmlDeviceGetHandleByIndex": library.handle_of,
        "nvmlDeviceGetUUID": library.uuid,
        "nvmlDeviceGetName": library.name,
        "nvmlDeviceGetMigMode": library.mig_mode,
        "nvmlDeviceGetMaxMigDeviceCount": lambda _: library.instances + 1,
        "nvmlDeviceGetMigDeviceHandleByIndex": library.instance,
        "nvmlDeviceGetGpuInstanceId": lambda handle: place_of(handle)[1],
        "nvmlGpmQueryDeviceSupport": lambda _: SimpleNamespace(isSupportedDevice=1),
        "nvmlGpmSampleAlloc": pynvml.c_nvmlGpmSample_t,
        "nvmlGpmSampleGet": library.reading,
        "nvmlGpmMetricsGet": library.reading,
        "nvmlDeviceGetFieldValues": library.field_values,
        "nvmlDeviceGetPowerUsage": lambda _: 700_000,
        "nvmlEventSetCreate": library.make_set,
        "nvmlEventSetFree": library.open_sets.remove,
        "nvmlDeviceRegisterEvents": library.register,
        "nvmlEventSetWait_v2": library.wait,
    }
    for name, call in calls.items():
        monkeypatch.setattr(pynvml, name, call)
    return library


def listened(driver: Nvml, rounds: int) -> XidCounts:
    """What was heard in so many rounds, of which some may fail."""
    xids = XidCounts(driver, ErrorCounts())
    for _ in range(rounds):
        try:
            xids.listen_once()
        except DeviceError:
            continue
    return xids


def test_xids_are_those_of_the_board_that_they_came_from(library: Library) -> None:
    library.hit(0, 13)
    library.hit(1, 31)
    xids = listened(Nvml(), rounds=3)
    assert (xids.of("GPU-0"), xids.of("GPU-1")) == ({13: 1}, {31: 1})


def test_the_xid_of_a_gpu_that_falls_off_the_bus_is_counted_and_so_are_those_of_the_others(
    library: Library,
) -> None:
    driver = Nvml()
    library.lost.add(0)
    library.hit(0, 79)
    library.hit(1, 13)
    xids = listened(driver, rounds=4)
    assert (xids.of("GPU-0"), xids.of("GPU-1")) == ({79: 1}, {13: 1})


def test_when_waiting_itself_fails_of_a_lost_gpu_the_others_are_heard_again(
    library: Library,
) -> None:
    driver = Nvml()
    library.events.append(pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST))
    listened(driver, rounds=1)
    library.lost.add(0)
    library.hit(1, 13)
    assert listened(driver, rounds=3).of("GPU-1") == {13: 1}
    assert len(library.open_sets) == 1


def test_a_board_that_tells_no_xids_is_left_out_once_and_the_others_are_heard(
    library: Library,
) -> None:
    driver = Nvml()
    library.refuses_events.add(0)
    library.hit(1, 13)
    with pytest.raises(DeviceError, match="unknown_error"):
        driver.next_xid(1)
    assert listened(driver, rounds=2).of("GPU-1") == {13: 1}
    assert library.sets_made == 1


def test_trying_again_to_hear_of_xids_leaves_no_set_of_events_behind(library: Library) -> None:
    driver = Nvml()
    library.refuses_events |= {0, 1}
    listened(driver, rounds=5)
    assert library.sets_made == 5
    assert library.open_sets == set()


def test_an_xid_of_a_mig_instance_is_its_own_and_one_of_the_board_is_everybodys(
    library: Library,
) -> None:
    library.instances = 2
    library.hit(1, 31, instance=2)
    library.hit(0, 79)
    driver = Nvml()
    assert [(gpu.index, gpu.uuid) for gpu in driver.gpus()] == [
        *((0, "MIG-0-1"), (1, "MIG-0-2"), (2, "MIG-1-1"), (3, "MIG-1-2"))
    ]
    xids = listened(driver, rounds=3)
    assert xids.of("MIG-1-2") == {31: 1}
    assert (xids.of("MIG-0-1"), xids.of("MIG-0-2"), xids.of("MIG-1-1")) == ({79: 1}, {79: 1}, {})


def test_a_gpu_that_is_lost_at_the_start_is_left_out_and_the_others_keep_their_indices(
    library: Library,
) -> None:
    library.boards = 4
    library.lost |= {0, 2}
    driver = Nvml()
    assert [(gpu.index, gpu.uuid) for gpu in driver.gpus()] == [(1, "GPU-1"), (3, "GPU-3")]
    assert driver.left_out() == [Reason.GPU_LOST, Reason.GPU_LOST]


READINGS = (
    NvmlGpu.take_sample,
    NvmlGpu.activity,
    NvmlGpu.throttled_seconds,
    NvmlGpu.energy_joules,
)


@pytest.mark.parametrize("under_way", READINGS)
@pytest.mark.parametrize("asked", READINGS)
def test_no_reading_of_another_gpu_begins_while_one_is_under_way(
    library: Library, under_way: Callable[[NvmlGpu], Any], asked: Callable[[NvmlGpu], Any]
) -> None:
    first, other = Nvml(turn_seconds=0.0).gpus()
    for gpu in (first, first, other, other):  # samples for `activity`
        gpu.take_sample()
    library.next_hangs = True
    hanging = Thread(target=under_way, args=(first,))
    hanging.start()
    try:
        assert library.has_begun.wait(30)
        begun = library.readings
        with pytest.raises(DeviceError, match="hung"):
            asked(other)
        assert library.readings == begun
        assert other.condition()["power_watts"] == 700.0
    finally:
        library.may_end.set()
        hanging.join()
    asked(other)
    assert library.readings == begun + 1
