"""CPU throttling is what the kernel counted, and unknown without a limit."""

from pathlib import Path

import pytest

from kopeck_exporter.cgroup import CpuThrottling, read_cpu_throttling
from tests.unit.exporter.cgroup_folders import VERSION_1, VERSION_2, write_files

COUNTED = CpuThrottling(periods=400, throttled_periods=100, throttled_seconds=2.5)
_V2 = "sys/fs/cgroup"
_V1 = "sys/fs/cgroup/cpu,cpuacct"


@pytest.mark.parametrize("files", [VERSION_1, VERSION_2], ids=["v1", "v2"])
def test_both_versions_are_read(tmp_path: Path, files: dict[str, str]) -> None:
    assert read_cpu_throttling(write_files(tmp_path, dict(files))) == COUNTED


@pytest.mark.parametrize(
    "changed",
    [
        VERSION_1 | {f"{_V1}/cpu.cfs_quota_us": "-1\n"},
        VERSION_2 | {f"{_V2}/cpu.max": "max 100000\n"},
        VERSION_2 | {f"{_V2}/cpu.max": None},
        {"proc/self/cgroup": "", "proc/self/mountinfo": ""},
    ],
    ids=["v1", "v2", "v2, the root's group", "no groups at all"],
)
def test_without_a_limit_it_is_unknown(tmp_path: Path, changed: dict[str, str | None]) -> None:
    assert read_cpu_throttling(write_files(tmp_path, changed)) is None


def test_a_process_in_a_deeper_group_of_the_mount_is_found(tmp_path: Path) -> None:
    """As on a machine without containers, and with the first version's cpu mounted alone."""
    files = {
        "proc/self/cgroup": "5:cpu:/user/session\n",
        "proc/self/mountinfo": "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n",
        "sys/fs/cgroup/cpu/user/session/cpu.cfs_quota_us": "50000",
        "sys/fs/cgroup/cpu/user/session/cpu.stat": VERSION_1[f"{_V1}/cpu.stat"],
    }
    assert read_cpu_throttling(write_files(tmp_path, dict(files))) == COUNTED


def test_an_empty_version_2_beside_version_1_is_passed_over(tmp_path: Path) -> None:
    unified = "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
    mounts = unified + VERSION_1["proc/self/mountinfo"]
    files = VERSION_1 | {"proc/self/mountinfo": mounts}
    assert read_cpu_throttling(write_files(tmp_path, dict(files))) == COUNTED


@pytest.mark.parametrize(
    ("files", "missing"),
    [
        (VERSION_1, f"{_V1}/cpu.stat"),
        (VERSION_1, f"{_V1}/cpu.cfs_quota_us"),
        (VERSION_2, f"{_V2}/cpu.stat"),
        (VERSION_2, "proc/self/cgroup"),
        (VERSION_2, "proc/self/mountinfo"),
    ],
)
def test_a_file_that_is_missing_is_an_error_not_a_zero(
    tmp_path: Path, files: dict[str, str], missing: str
) -> None:
    with pytest.raises(OSError, match="No such file"):
        read_cpu_throttling(write_files(tmp_path, {**files, missing: None}))


@pytest.mark.parametrize("stat", ["", "nr_periods 4\n", "nr_periods x\n", "nr_periods\n"])
def test_counts_that_are_none_are_an_error_not_a_zero(tmp_path: Path, stat: str) -> None:
    with pytest.raises(ValueError, match=r"cpu\.stat|invalid literal|unpack"):
        read_cpu_throttling(write_files(tmp_path, {**VERSION_2, f"{_V2}/cpu.stat": stat}))
