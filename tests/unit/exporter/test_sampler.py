"""A sampler says all that it knows, whatever becomes of the driver."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes.util import find_library
from itertools import chain
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from kopeck_exporter.device import DeviceError, Driver, Reason, Xid
from kopeck_exporter.errors import Fault
from kopeck_exporter.sampler import OPEN_SECONDS, Sampler, open_nvml, samples_gpus
from kopeck_exporter.sampler_report import SamplerReport, read_sampler_report
from tests.gpus import CONDITION, Hang, ReplayDriver, ReplayGpu, always
from tests.unit.exporter.cgroup_folders import VERSION_2, write_files
from tests.waiting import eventually


class Time:
    seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def a_sampler(
    folder: Path, open_driver: Callable[[], Driver] | None, clock: Time | None = None, **how: Any
) -> Sampler:
    """In the training container of a pod with a CPU limit."""
    root = write_files(folder, dict(VERSION_2))
    how = {"clock": clock} if clock else how
    sampler = Sampler("trainer", open_driver, root=root, **how)
    sampler.start()
    return sampler


def told(sampler: Sampler) -> SamplerReport:
    """As the exporter reads it."""
    return read_sampler_report(json.loads(json.dumps(sampler.message())))


def errors(sampler: Sampler) -> dict[str, int]:
    counted = told(sampler).errors
    return {f"{fault.source} {fault.reason}": count for fault, count in counted.items()}


def test_eight_gpus_and_the_cpu_limit_are_one_message(tmp_path: Path) -> None:
    gpus = [ReplayGpu(index, f"GPU-{index}") for index in range(8)]
    sampler = a_sampler(tmp_path, lambda: ReplayDriver(gpus))

    def complete() -> None:
        report = told(sampler)
        assert len(report.gpus) == 8
        assert all(gpu.sm_utilization_ratio == 0.965 for gpu in report.gpus)
        assert all(gpu.energy_joules is not None for gpu in report.gpus)

    eventually(complete)
    report = told(sampler)
    assert len(json.dumps(sampler.message())) < 16_000
    assert report.cpu is not None
    assert report.cpu.throttled_seconds == 2.5
    assert report.errors == {}
    assert told(sampler).sequence == report.sequence + 2


def test_messages_that_no_exporter_took_are_told_in_the_next_one(tmp_path: Path) -> None:
    sampler = a_sampler(tmp_path, None)
    message = json.loads(json.dumps(sampler.message(dropped=3)))
    assert read_sampler_report(message).errors == {Fault.DROPPED: 3}


def test_a_call_that_hangs_hides_its_gpu_and_nothing_else(tmp_path: Path) -> None:
    hang, clock = Hang(), Time()
    gpus = [
        ReplayGpu(0, "GPU-0"),
        ReplayGpu(1, "GPU-1", conditions=chain([hang], always(CONDITION))),
    ]
    sampler = a_sampler(tmp_path, lambda: ReplayDriver(gpus), clock)
    assert hang.began.wait(30)
    clock.seconds += 6

    def only_the_other() -> None:
        healthy, hung = told(sampler).gpus
        assert healthy.power_watts == 693.0
        assert (hung.power_watts, hung.throttled_seconds) == (None, {})

    eventually(only_the_other)
    assert errors(sampler) == {"nvml hung": 1}
    assert told(sampler).cpu is not None
    hang.ended.set()


def test_a_driver_that_never_opens_is_counted_as_hung_and_the_cpu_is_still_told(
    tmp_path: Path,
) -> None:
    hang, clock = Hang(), Time()

    def open_driver() -> Driver:
        hang.began.set()
        hang.ended.wait()
        return ReplayDriver([])

    sampler = a_sampler(tmp_path, open_driver, clock)
    assert hang.began.wait(30)
    assert errors(sampler) == {}
    clock.seconds += OPEN_SECONDS + 1
    assert errors(sampler) == errors(sampler) == {"nvml hung": 1}
    assert told(sampler).cpu is not None
    hang.ended.set()


@pytest.mark.parametrize("reason", [Reason.NO_LIBRARY, Reason.NO_PERMISSION, Reason.UNKNOWN_ERROR])
def test_a_driver_that_does_not_open_is_named_and_the_cpu_is_still_told(
    tmp_path: Path, reason: Reason
) -> None:
    def open_driver() -> Driver:
        raise DeviceError(reason)

    sampler = a_sampler(tmp_path, open_driver)

    def named() -> None:
        assert errors(sampler) == {f"nvml {reason}": 1}

    eventually(named)
    assert told(sampler).gpus == ()
    assert told(sampler).cpu is not None


def test_a_gpu_that_does_not_answer_at_the_start_is_counted_and_the_others_are_sampled(
    tmp_path: Path,
) -> None:
    driver = ReplayDriver([ReplayGpu(1, "GPU-1")], unreadable=[Reason.GPU_LOST])
    sampler = a_sampler(tmp_path, lambda: driver)

    def sampled() -> None:
        assert [gpu.power_watts for gpu in told(sampler).gpus] == [693.0]

    eventually(sampled)
    assert errors(sampler) == {"nvml gpu_lost": 1}


def test_a_group_that_cannot_be_read_is_counted_and_absent(tmp_path: Path) -> None:
    sampler = Sampler("trainer", None, root=tmp_path)
    assert told(sampler).cpu is None
    assert errors(sampler) == {"cgroup unreadable": 2}


def test_the_sidecars_own_cpu_limit_is_not_the_trainings(tmp_path: Path) -> None:
    assert (
        "cpu" not in Sampler("sidecar", None, root=write_files(tmp_path, dict(VERSION_2))).message()
    )


def test_xids_are_counted_by_gpu_and_number_also_of_a_gpu_that_is_lost(tmp_path: Path) -> None:
    lost = always(DeviceError(Reason.GPU_LOST))
    gpus = [ReplayGpu(0, "GPU-0", conditions=lost), ReplayGpu(1, "GPU-1")]
    driver = ReplayDriver(gpus)
    for number, uuids in [(79, ("GPU-0",)), (31, ("GPU-1",)), (31, ("GPU-1",)), (94, ("GPU-9",))]:
        driver.xids.put(Xid(number, uuids))
    sampler = a_sampler(tmp_path, lambda: driver)

    def counted() -> None:
        assert [gpu.xids for gpu in told(sampler).gpus] == [{79: 1}, {31: 2}]
        assert told(sampler).gpus[0].power_watts is None

    eventually(counted)


def test_numbers_of_xids_are_bounded(tmp_path: Path) -> None:
    driver = ReplayDriver([ReplayGpu()])
    for number in range(100):
        driver.xids.put(Xid(number, ("GPU-0",)))
    driver.xids.put(Xid(0, ("GPU-0",)))
    sampler = a_sampler(tmp_path, lambda: driver)

    def bounded() -> None:
        [gpu] = told(sampler).gpus
        assert len(gpu.xids) == 32
        assert gpu.xids[0] == 2

    eventually(bounded)


def test_a_driver_that_forbids_events_is_named_once(tmp_path: Path) -> None:
    refusals: Queue[Xid | DeviceError] = Queue()
    refusals.put(DeviceError(Reason.NO_PERMISSION))
    sampler = a_sampler(tmp_path, lambda: ReplayDriver([ReplayGpu()], refusals))

    def named() -> None:
        assert errors(sampler) == {"xid no_permission": 1}

    eventually(named)


def test_only_the_gpus_that_cuda_may_use_are_sampled(tmp_path: Path) -> None:
    gpus = [ReplayGpu(index, f"GPU-{index}") for index in range(4)]
    sampler = a_sampler(tmp_path, lambda: ReplayDriver(gpus), visible_devices="2,3")

    def only_those() -> None:
        assert [gpu.uuid for gpu in told(sampler).gpus] == ["GPU-2", "GPU-3"]

    eventually(only_those)


@pytest.mark.skipif(find_library("nvidia-ml") is not None, reason="this machine has NVML")
def test_a_machine_without_the_library_has_no_gpus_and_says_why(tmp_path: Path) -> None:
    sampler = a_sampler(tmp_path, open_nvml)

    def named() -> None:
        assert errors(sampler) == {"nvml no_library": 1}

    eventually(named)


@pytest.mark.parametrize(
    ("origin", "sampling", "device", "samples"),
    [
        ("trainer", None, "nvidia0", True),
        ("trainer", None, "nvidiactl", False),
        ("trainer", "sidecar", "nvidia0", False),
        ("sidecar", "sidecar", "nvidia7", True),
        ("sidecar", None, "nvidia0", False),
    ],
)
def test_gpus_are_read_in_one_container_and_only_where_there_are_some(
    tmp_path: Path, origin: str, sampling: str | None, device: str, *, samples: bool
) -> None:
    write_files(tmp_path, {f"dev/{device}": ""})
    environment = {"KOPECK_GPU_SAMPLING": sampling} if sampling else {}
    assert samples_gpus(origin, environment, tmp_path) == samples


def listening(path: Path) -> socket.socket:
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    server.bind(str(path))
    server.listen()
    server.settimeout(30)
    return server


def start(origin: str, path: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "kopeck_exporter.sampler", origin]
    environment = {**os.environ, "KOPECK_SOCKET": str(path)}
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)


@contextmanager
def started_by_another(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], socket.socket]]:
    """The process that started a sampler, and the connection of that."""
    script = f"{sys.executable} -m kopeck_exporter.sampler trainer & wait"
    environment = {**os.environ, "KOPECK_SOCKET": str(folder / "socket")}
    with listening(folder / "socket") as server:
        launcher = subprocess.Popen(["sh", "-c", script], env=environment, start_new_session=True)
        try:
            connection, _ = server.accept()
            with connection:
                connection.settimeout(30)
                yield launcher, connection
        finally:
            with_its_group(launcher.pid)


def test_as_a_process_it_sends_every_second_and_ends_with_the_one_that_started_it(
    tmp_path: Path,
) -> None:
    with started_by_another(tmp_path) as (launcher, connection):
        first, second = (json.loads(connection.recv(65_536)) for _ in range(2))
        assert (first["seq"], second["seq"]) == (1, 2)
        assert read_sampler_report(second).gpus == ()
        launcher.kill()
        launcher.wait()
        while connection.recv(65_536):
            continue


def children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize("killed_by", [signal.SIGSEGV, signal.SIGKILL])
def test_a_sampler_that_dies_is_started_again_and_tells_of_it(
    tmp_path: Path, killed_by: signal.Signals
) -> None:
    with (
        listening(tmp_path / "socket") as server,
        start("trainer", tmp_path / "socket") as process,
    ):
        try:
            for deaths in range(2):
                connection, _ = server.accept()
                with connection:
                    connection.settimeout(30)
                    report = read_sampler_report(json.loads(connection.recv(65_536)))
                    assert report.errors.get(Fault.SAMPLER_DIED, 0) == deaths
                    [reading] = children(process.pid)
                    os.kill(reading, killed_by)
                    assert process.stderr is not None
                    said = process.stderr.readline().decode()
                    assert said == (
                        f"kopeck: the sampler was killed by {killed_by.name}, "
                        f"and begins again in {deaths + 1} s\n"
                    )
        finally:
            process.kill()


def test_while_it_waits_to_begin_again_it_ends_with_the_one_that_started_it(
    tmp_path: Path,
) -> None:
    with started_by_another(tmp_path) as (launcher, _):
        [sampler] = children(launcher.pid)
        [reading] = children(sampler)
        os.kill(reading, signal.SIGKILL)
        launcher.kill()
        launcher.wait()
        eventually(lambda: is_gone(sampler))


def is_gone(pid: int) -> None:
    stat = Path(f"/proc/{pid}/stat")
    assert not stat.exists() or stat.read_text().split()[2] == "Z"


def with_its_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def test_an_origin_that_is_none_is_said_in_a_sentence(tmp_path: Path) -> None:
    with start("node", tmp_path / "socket") as process:
        _, said = process.communicate(timeout=30)
    assert process.returncode == 2
    assert said == b"kopeck: say which container this is: `trainer` or `sidecar`\n"
