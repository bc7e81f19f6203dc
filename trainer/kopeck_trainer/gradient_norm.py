"""The norm of this rank's part of all gradients."""

from collections.abc import Iterable
from functools import partial

import torch
from torch import Tensor
from torch.distributed.fsdp import FSDPModule

from kopeck_trainer.fsdp_groups import groups


class ReducedNorm:
    """Taken group by group as FSDP reduces them, while backward goes on."""

    def __init__(self, model: FSDPModule) -> None:
        self._norms: dict[int, Tensor] = {}
        """By the number of the group."""
        self._has_parts = False
        """A group that a forward uses twice is reduced in parts, whose norms do not add up."""
        for number, (module, _) in enumerate(groups(model)):
            module.set_all_reduce_hook(partial(self._add, number))

    def begin(self) -> None:
        """Forget what was reduced before."""
        self._norms = {}
        self._has_parts = False

    def square(self, gradients: list[Tensor]) -> Tensor:
        """Of all that was reduced since, the `gradients`. FSDP's padding is zeros."""
        return squared_norm(gradients) if self._has_parts else _sum_of_squares(self._norms.values())

    def _add(self, number: int, reduced: Tensor) -> None:
        """In a stream that FSDP waits for at the end of backward."""
        self._has_parts |= number in self._norms
        self._norms[number] = torch.linalg.vector_norm(reduced)


def squared_norm(gradients: list[Tensor]) -> Tensor:
    """As a scalar of fp64."""
    norms = torch._foreach_norm(gradients, 2, torch.float32)  # noqa: SLF001  torch clips with it
    return _sum_of_squares(norms)


def _sum_of_squares(norms: Iterable[Tensor]) -> Tensor:
    return torch.stack(tuple(norms)).double().square().sum()
