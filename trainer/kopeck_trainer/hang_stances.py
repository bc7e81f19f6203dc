"""Where all ranks of a hanging job stand, told through the store of rank 0."""

import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta

from torch._C._distributed_c10d import Store, TCPStore

from kopeck_trainer.environment import RankEnvironment
from kopeck_trainer.hang_verdict import Stance, stance_as_json, stance_from_json

ANSWER_SECONDS = 5.0
"""For ranks to say where they stand: their deadlines are as close as the ends of their steps."""
POLL_SECONDS = 0.2


def exchanged_stances(
    rank: RankEnvironment, address: tuple[str, int], own: Stance
) -> Mapping[int, Stance]:
    """By rank, of those that answer. Rank 0 hosts the store: without it there is only our own."""
    found = {rank.rank: own}

    def exchange() -> None:
        with suppress(RuntimeError):
            found.update(_exchanged(_connected(address), rank, own))

    # A thread, as a connection to a process that stands still has no timeout.
    thread = threading.Thread(target=exchange, daemon=True)
    thread.start()
    thread.join(2 * ANSWER_SECONDS)
    return dict(found)


def _connected(address: tuple[str, int]) -> TCPStore:
    """On a connection of its own: the main thread may wait in the one that it has."""
    host, port = address
    timeout = timedelta(seconds=ANSWER_SECONDS)
    return TCPStore(host, port, is_master=False, wait_for_workers=False, timeout=timeout)


def _exchanged(store: Store, rank: RankEnvironment, own: Stance) -> Mapping[int, Stance]:
    store.set(_key(rank.rank), stance_as_json(own))
    answered = store.add("hang/answered", 1)
    deadline = time.monotonic() + ANSWER_SECONDS
    while answered < rank.world_size and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
        answered = store.add("hang/answered", 0)
    present = _present(store, [_key(each) for each in range(rank.world_size)])
    texts = store.multi_get(present)
    stances = {
        int(key.rpartition("/")[2]): stance_from_json(text.decode())
        for key, text in zip(present, texts, strict=True)
    }
    _leave_store_together(store, rank, answered, deadline + ANSWER_SECONDS)
    return stances


def _leave_store_together(
    store: Store, rank: RankEnvironment, answered: int, deadline: float
) -> None:
    """Rank 0 takes the store with it, so it goes last."""
    read = store.add("hang/read", 1)
    while rank.rank == 0 and read < answered and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
        read = store.add("hang/read", 0)


def _present(store: Store, keys: list[str]) -> list[str]:
    """Those that are set, found by halves: one request where all are."""
    if store.check(keys):
        return keys
    if len(keys) == 1:
        return []
    middle = len(keys) // 2
    return _present(store, keys[:middle]) + _present(store, keys[middle:])


def _key(rank: int) -> str:
    return f"hang/{rank}"
