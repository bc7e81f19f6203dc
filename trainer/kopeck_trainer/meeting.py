"""How ranks meet: each is seen to be there before any waits for the others inside of torch."""

import time
from collections.abc import Callable
from datetime import timedelta

from torch._C._distributed_c10d import Store, TCPStore
from torch.distributed import DistNetworkError, DistStoreError

from kopeck_trainer.environment import RankEnvironment
from kopeck_trainer.errors import RendezvousError
from kopeck_trainer.rendezvous import wait_for_master

SAY_SECONDS = 30.0
"""Between two lines about the ranks that are missing."""
NAMED_RANKS = 8


def meet(
    rank: RankEnvironment, say: Callable[[str], None], say_seconds: float = SAY_SECONDS
) -> TCPStore:
    """The store that rank 0 hosts, once all ranks have come to it.

    `say` is told who is missing. Raises RendezvousError when the time is over, or rank 0 gone.
    """
    deadline = time.monotonic() + rank.rendezvous_seconds
    try:
        store = _store(rank)
        store.set(_key(rank.rank), "")
        if store.add("met", 1) == rank.world_size:
            store.set("all met", "")
        while not _all_met(store, min(say_seconds, deadline - time.monotonic())):
            missing = _missing(store, rank.world_size)
            if time.monotonic() >= deadline:
                raise RendezvousError(f"{missing} did not come in {rank.rendezvous_seconds:.0f} s")
            say(f"waiting for {missing}")
    except DistNetworkError as error:
        reason = str(error).partition("\n")[0]
        raise RendezvousError(f"rank {rank.rank} lost the store of rank 0: {reason}") from None
    return store


def _store(rank: RankEnvironment) -> TCPStore:
    address = rank.master_address
    if rank.rank:
        address = wait_for_master(
            address, rank.master_port, seconds=rank.rendezvous_seconds, pause=time.sleep
        )
    return TCPStore(
        address,
        rank.master_port,
        is_master=rank.rank == 0,
        wait_for_workers=False,
        timeout=timedelta(seconds=rank.rendezvous_seconds),
    )


def _all_met(store: Store, seconds: float) -> bool:
    try:
        store.wait(["all met"], timedelta(seconds=max(0.001, seconds)))
    except DistStoreError:
        return False
    return True


def _missing(store: Store, ranks: int) -> str:
    missing = [str(rank) for rank in range(ranks) if not store.check([_key(rank)])]
    more = f" and {len(missing) - NAMED_RANKS} more" if len(missing) > NAMED_RANKS else ""
    return f"rank {', '.join(missing[:NAMED_RANKS])}{more}"


def _key(rank: int) -> str:
    return f"met/{rank}"
