"""The weights that a forward needs first, gathered while the others are updated."""

from collections.abc import Callable, Mapping

from torch import nn
from torch.distributed.fsdp import FSDPModule

from kopeck_trainer.fsdp_groups import groups

FIRST_GROUPS = 3
"""The root's own, and two that may be the embedding and the first block."""


class EarlyGather:
    """Gathers the first groups of weights once they are updated.

    FSDP waits for them in the forward that uses them, and drops after backward what none used.
    """

    def __init__(self, model: FSDPModule) -> None:
        first = groups(model)[:FIRST_GROUPS]
        self._modules = [module for module, _ in first]
        self._masters = {master for _, masters in first for master in masters}

    def update(self, updates: Mapping[nn.Parameter, Callable[[], None]]) -> None:
        """Call the `updates`, by master."""
        for master in self._masters & updates.keys():
            updates[master]()
        for module in self._modules:
            module.unshard(async_op=True)
        for master in updates.keys() - self._masters:
            updates[master]()
