"""A CPU limit like a container's, around a process of this machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.waiting import eventually

_ROOT = Path("/sys/fs/cgroup")
_PERIOD_MICROSECONDS = 100_000


@contextmanager
def limited(name: str, pid: int, cpus: float) -> Iterator[None]:
    """A group of its own for the block, under either version. Needs root.

    The process must have ended by the end of the block.
    """
    is_unified = (_ROOT / "cgroup.controllers").exists()
    group = (_ROOT if is_unified else _ROOT / "cpu") / name
    group.mkdir()
    quota = round(cpus * _PERIOD_MICROSECONDS)
    if is_unified:
        (group / "cpu.max").write_text(f"{quota} {_PERIOD_MICROSECONDS}")
    else:
        (group / "cpu.cfs_quota_us").write_text(str(quota))
    try:
        (group / "cgroup.procs").write_text(str(pid))
        yield
    finally:
        eventually(lambda: _remove(group))


def _remove(group: Path) -> None:
    try:
        group.rmdir()
    except OSError as busy:
        raise AssertionError(f"{group} still has a process") from busy
