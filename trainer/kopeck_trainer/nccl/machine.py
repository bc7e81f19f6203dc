"""What this pod shows of the machine that it is on."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kopeck_trainer.nccl.interfaces import Address, interface_addresses


@dataclass(frozen=True, kw_only=True)
class Machine:
    """All that NCCL's environment depends on."""

    root: Path
    """The folder that proc, sys, dev and etc lie in."""
    addresses: Mapping[str, set[Address]]
    """Of the pod's interfaces, as `interface_addresses` tells them."""
    cpus: frozenset[int]
    """That the pod may use."""


def this_machine() -> Machine:
    return Machine(
        root=Path("/"),
        addresses=interface_addresses(),
        cpus=frozenset(os.sched_getaffinity(0)),
    )
