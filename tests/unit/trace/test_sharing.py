"""Work that this process and others share."""

from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from threading import Barrier, current_thread

import pytest

from kopeck.trace.sharing import shared_out

_HELPERS = 2


@pytest.fixture
def pool() -> Iterator[Executor]:
    with ThreadPoolExecutor(_HELPERS) as pool:
        yield pool


def _nothing() -> None:
    pass


@pytest.mark.parametrize("parts", [0, 1, 2, 50])
def test_each_part_is_done_once_and_comes_in_its_order(pool: Executor, parts: int) -> None:
    seen: list[int] = []

    def work(part: int) -> int:
        seen.append(part)
        return part * 10

    told: list[None] = []
    done = shared_out(pool, _HELPERS, work, range(parts), lambda: told.append(None))
    assert done == [part * 10 for part in range(parts)]
    assert sorted(seen) == list(range(parts))
    assert len(told) == parts


def test_this_process_and_each_helper_work_at_once(pool: Executor) -> None:
    all_are_here = Barrier(_HELPERS + 1, timeout=60)

    def work(_: int) -> str:
        all_are_here.wait()
        return current_thread().name

    workers = shared_out(pool, _HELPERS, work, range(_HELPERS + 1), _nothing)
    assert len(set(workers)) == _HELPERS + 1
    assert current_thread().name in workers


@pytest.mark.parametrize("wrong", [0, 1, 19])
def test_what_goes_wrong_with_a_part_is_raised(pool: Executor, wrong: int) -> None:
    def work(part: int) -> None:
        if part == wrong:
            raise ValueError(part)

    with pytest.raises(ValueError, match=f"^{wrong}$"):
        shared_out(pool, _HELPERS, work, range(20), _nothing)
