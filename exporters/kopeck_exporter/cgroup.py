"""CPU throttling of the container that this process runs in, as the kernel counts it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

ROOT = Path("/")


@dataclass(frozen=True, slots=True)
class CpuThrottling:
    """Since the container started.

    `throttled_seconds` add up over CPUs, so they may exceed the time that has passed.
    """

    periods: int
    throttled_periods: int
    throttled_seconds: float


def read_cpu_throttling(root: Path = ROOT) -> CpuThrottling | None:
    """None without a CPU limit: nothing is counted then. `root` is that of the file system.

    Raises OSError or ValueError where the kernel's files are not as they should be.
    """
    own = _hierarchies(root / "proc/self/cgroup")
    mounts = _mounts(root / "proc/self/mountinfo")
    if "cpu" in own and "cpu" in mounts:  # version 1, also beside a version 2 without controllers
        return _version_1(root / mounts["cpu"].folder_of(own["cpu"]))
    if "" in own and "" in mounts:
        return _version_2(root / mounts[""].folder_of(own[""]))
    return None


def _version_1(folder: Path) -> CpuThrottling | None:
    if int((folder / "cpu.cfs_quota_us").read_text()) <= 0:
        return None
    return _throttling(folder, throttled="throttled_time", per_second=1e9)


def _version_2(folder: Path) -> CpuThrottling | None:
    limit = folder / "cpu.max"
    if not limit.exists() or limit.read_text().split()[0] == "max":  # the root group has none
        return None
    return _throttling(folder, throttled="throttled_usec", per_second=1e6)


def _throttling(folder: Path, *, throttled: str, per_second: float) -> CpuThrottling:
    lines = (line.split() for line in (folder / "cpu.stat").read_text().splitlines())
    counts = {name: int(value) for name, value in lines}
    try:
        return CpuThrottling(
            periods=counts["nr_periods"],
            throttled_periods=counts["nr_throttled"],
            throttled_seconds=counts[throttled] / per_second,
        )
    except KeyError as missing:
        raise ValueError(f"cpu.stat has no {missing}") from missing


@dataclass(frozen=True, slots=True)
class _Mount:
    """Where a hierarchy of groups is mounted, and from which of its groups on."""

    point: str
    top: str

    def folder_of(self, group: str) -> str:
        """Relative to the file system's root. A group outside the mount is the mount's top.

        A runtime mounts the container's own group there, whatever the process calls it.
        """
        path, top = PurePosixPath(group), PurePosixPath(self.top)
        inside = path.relative_to(top) if path.is_relative_to(top) else PurePosixPath()
        return str(PurePosixPath(self.point) / inside).lstrip("/")


def _hierarchies(file: Path) -> Mapping[str, str]:
    """The group of this process by controller; that of version 2 has no name."""
    groups = {}
    for line in file.read_text().splitlines():
        _, controllers, group = line.split(":", 2)
        for controller in controllers.split(","):
            groups[controller] = group
    return groups


def _mounts(file: Path) -> Mapping[str, _Mount]:
    """Of groups, likewise."""
    mounts: dict[str, _Mount] = {}
    for line in file.read_text().splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        top, point = before.split(" ")[3:5]
        for controller in _controllers(kind, options):
            mounts.setdefault(controller, _Mount(point=point, top=top))
    return mounts


def _controllers(kind: str, options: str) -> Iterator[str]:
    if kind == "cgroup2":
        yield ""
    elif kind == "cgroup":
        yield from options.rsplit(" ", maxsplit=1)[-1].split(",")
