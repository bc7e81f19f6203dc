"""Work shared by this process with others."""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import TypeVar

Part = TypeVar("Part")
Done = TypeVar("Done")


def shared_out(
    pool: Executor,
    helpers: int,
    work: Callable[[Part], Done],
    parts: Sequence[Part],
    told: Callable[[], None],
) -> list[Done]:
    """What `work` makes of each part, in their order; `told` is called as each is done.

    This process and as many others in the pool each take the next part when they are free. Parts
    that are many more than cores let one busy core delay the whole by one of them at most.
    """
    left = deque(range(len(parts)))
    done: dict[int, Done] = {}

    def work_through(one: Callable[[Part], Done]) -> None:
        while True:
            try:
                at = left.popleft()
            except IndexError:
                return
            done[at] = one(parts[at])
            told()

    with ThreadPoolExecutor(helpers) as asking:
        asked = [
            asking.submit(work_through, lambda part: pool.submit(work, part).result())
            for _ in range(helpers)
        ]
        work_through(work)
        for each in asked:
            each.result()
    return [done[at] for at in range(len(parts))]
