"""What ranks tell each other of a window, through the store of rank 0.

No collective: a rank that is late, or gone, costs the others nothing but this figure.
"""

from collections.abc import Callable
from datetime import timedelta

from torch._C._distributed_c10d import Store, TCPStore

from kopeck_trainer.environment import RankEnvironment

GATHER_SECONDS = 20.0
"""For all ranks to tell; they have recorded the same steps, and read them at low priority."""
ANSWER_SECONDS = 30.0
UNKNOWN = "null"


class Exchange:
    """Of one rank. Windows have a step, the same on all ranks, and one is exchanged at a time."""

    def __init__(self, rank: RankEnvironment, address: tuple[str, int]) -> None:
        """`address` is the store's, of rank 0."""
        self._rank = rank
        self._address = address
        self._store: Store | None = None
        self._told: list[str] = []
        """Keys of the last window, which nobody may have read."""

    def answer(self, step: int, told: str, summed_up: Callable[[list[str]], str]) -> str:
        """What rank 0 makes by `summed_up` of what the ranks have told, by rank.

        Raises RuntimeError where one tells nothing in time, or the store is gone.
        """
        store = self._connected()
        while self._told:
            store.delete_key(self._told.pop())
        self._tell(store, _key(step, self._rank.rank), told)
        if self._rank.rank == 0:
            try:
                answer = summed_up(self._gathered(store, step))
            except RuntimeError:
                self._tell(store, _answer_key(step), UNKNOWN)
                raise
            self._tell(store, _answer_key(step), answer)
            return answer
        store.wait([_answer_key(step)], timedelta(seconds=ANSWER_SECONDS))
        return store.get(_answer_key(step)).decode()

    def _connected(self) -> Store:
        """On a connection of its own: the main thread may wait in the one that it has."""
        if self._store is None:
            host, port = self._address
            timeout = timedelta(seconds=ANSWER_SECONDS)
            self._store = TCPStore(
                host, port, is_master=False, wait_for_workers=False, timeout=timeout
            )
        return self._store

    def _tell(self, store: Store, key: str, text: str) -> None:
        store.set(key, text)
        self._told.append(key)

    def _gathered(self, store: Store, step: int) -> list[str]:
        keys = [_key(step, rank) for rank in range(self._rank.world_size)]
        store.wait(keys, timedelta(seconds=GATHER_SECONDS))
        return [text.decode() for text in store.multi_get(keys)]


def _key(step: int, rank: int) -> str:
    return f"window/{step}/{rank}"


def _answer_key(step: int) -> str:
    return f"window/{step}/answer"
