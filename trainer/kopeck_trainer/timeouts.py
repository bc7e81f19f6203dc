"""How long the collectives of this process may take."""

from datetime import timedelta

from torch import distributed as dist
from torch.distributed import distributed_c10d


def set_timeouts(seconds: float) -> None:
    """For what all ranks start from now on, in every group of this process.

    They meet first: with a shorter timeout, one could lose patience with a rank that still waits
    under the longer one.
    """
    dist.barrier()
    # Public since torch 2.15; 2.11 has it under the other name.
    set_timeout = getattr(dist, "set_timeout", None) or distributed_c10d._set_pg_timeout  # noqa: SLF001
    for group in distributed_c10d._world.pg_map:  # noqa: SLF001  there is no public list
        set_timeout(timedelta(seconds=seconds), group)
