"""File systems with the kernel's files of a container, of both versions of control groups."""

from pathlib import Path

VERSION_2 = {
    "proc/self/cgroup": "0::/\n",
    "proc/self/mountinfo": "35 29 0:26 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw\n",
    "sys/fs/cgroup/cpu.max": "150000 100000\n",
    "sys/fs/cgroup/cpu.stat": "usage_usec 9000000\nuser_usec 8000000\nsystem_usec 1000000\n"
    "nr_periods 400\nnr_throttled 100\nthrottled_usec 2500000\nnr_bursts 0\nburst_usec 0\n",
}
"""As a container sees it that has a namespace of groups."""

_POD = "/kubepods/pod1/container2"
VERSION_1 = {
    "proc/self/cgroup": f"9:memory:{_POD}\n4:cpu,cpuacct:{_POD}\n1:name=systemd:{_POD}\n0::/\n",
    "proc/self/mountinfo": (
        "31 23 0:28 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755\n"
        f"32 31 0:29 {_POD} /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n"
        f"33 31 0:30 {_POD} /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
    ),
    "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "150000\n",
    "sys/fs/cgroup/cpu,cpuacct/cpu.stat": "nr_periods 400\nnr_throttled 100\n"
    "throttled_time 2500000000\n",
}
"""As a container sees it without one: its own group is mounted in the place of the top."""


def write_files(root: Path, files: dict[str, str | None]) -> Path:
    """`files` with their texts; None leaves one out."""
    for name, text in files.items():
        if text is not None:
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return root
