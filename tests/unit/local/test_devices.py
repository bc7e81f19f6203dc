"""Workers on one machine share no GPU."""

import pytest

from kopeck.local.devices import devices_of


@pytest.mark.parametrize(
    ("worker", "gpus", "visible", "own"),
    [
        (0, 1, None, "0"),
        (1, 1, None, "1"),
        (1, 4, None, "4,5,6,7"),
        (0, 2, "3,1,0,2", "3,1"),
        (1, 2, "3, 1, 0, 2", "0,2"),
        (1, 1, "GPU-8a5c,GPU-77fe", "GPU-77fe"),
        (1, 1, "0", ""),
    ],
)
def test_each_worker_has_the_next_gpus_of_those_that_may_be_used(
    worker: int, gpus: int, visible: str | None, own: str
) -> None:
    assert devices_of(worker, gpus, visible) == {"CUDA_VISIBLE_DEVICES": own}


def test_workers_without_gpus_see_what_the_machine_shows() -> None:
    assert devices_of(1, 0, "0,1") == {}
