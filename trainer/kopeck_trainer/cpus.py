"""How many CPUs this container may use."""

import math
import os
from pathlib import Path

CGROUP_ROOT = Path("/sys/fs/cgroup")


def usable_cpus(cgroup_root: Path = CGROUP_ROOT) -> int:
    """CPUs of the affinity mask, or fewer where the container's CPU limit is lower; at least 1.

    More threads than the limit spend it on waiting for each other, throttled.
    """
    limit = _limit_v2(cgroup_root) or _limit_v1(cgroup_root) or math.inf
    return max(1, min(len(os.sched_getaffinity(0)), math.ceil(min(limit, os.cpu_count() or 1))))


def _limit_v2(root: Path) -> float | None:
    """CPUs by `cpu.max` ("quota period", in µs), None without a limit."""
    text = _read(root / "cpu.max")
    if not text or text.startswith("max"):
        return None
    quota, period = text.split()
    return int(quota) / int(period)


def _limit_v1(root: Path) -> float | None:
    """CPUs by the files of the `cpu` controller, in µs; a quota of -1 is no limit."""
    quota = _read(root / "cpu" / "cpu.cfs_quota_us")
    period = _read(root / "cpu" / "cpu.cfs_period_us")
    if not quota or not period or int(quota) <= 0:
        return None
    return int(quota) / int(period)


def _read(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None
