import os
from pathlib import Path

import pytest

from kopeck_trainer.cpus import usable_cpus


@pytest.mark.parametrize(
    "files",
    [
        {"cpu.max": "50000 100000"},
        {"cpu/cpu.cfs_quota_us": "100000", "cpu/cpu.cfs_period_us": "100000"},
    ],
)
def test_a_limit_of_one_cpu_or_less_is_one(tmp_path: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    assert usable_cpus(tmp_path) == 1


@pytest.mark.parametrize("files", [{}, {"cpu.max": "max 100000"}, {"cpu/cpu.cfs_quota_us": "-1"}])
def test_without_a_limit_it_is_the_affinity(tmp_path: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    assert usable_cpus(tmp_path) == len(os.sched_getaffinity(0))
