"""The GPUs that CUDA may use are found as CUDA finds them."""

import pytest

from kopeck_exporter.visible_devices import visible
from tests.gpus import ReplayGpu

GPUS = [ReplayGpu(index, f"GPU-{uuid}") for index, uuid in enumerate(["aa1", "aa2", "bb3"])]


@pytest.mark.parametrize(
    ("setting", "indices"),
    [
        (None, [0, 1, 2]),
        ("", []),
        ("2,0", [2, 0]),
        (" 1 ", [1]),
        ("GPU-bb,GPU-aa1", [2, 0]),
        ("0,-1,1", [0]),
        ("0,7,1", [0]),
        ("GPU-aa", []),  # two begin so
        ("1,1", [1]),
        ("NoDevFiles", []),
    ],
)
def test_a_setting_names_gpus(setting: str | None, indices: list[int]) -> None:
    assert [gpu.index for gpu in visible(GPUS, setting)] == indices
