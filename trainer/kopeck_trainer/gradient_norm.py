"""The norm of this rank's part of all gradients."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.distributed.fsdp import FSDPModule

from kopeck_trainer.fsdp_groups import groups


class ReducedNorm:
    """Taken group by group as FSDP reduces them, while backward goes on."""

    def __init__(self, model: FSDPModule) -> None:
        self._norms: list[Tensor] = []
        for module, _ in groups(model):
            module.set_all_reduce_hook(self._add)

    def begin(self) -> None:
        """Forget what was reduced before."""
        self._norms = []

    def square(self) -> Tensor:
        """Of all that was reduced since, as a scalar of fp64. FSDP's padding is zeros."""
        return _sum_of_squares(self._norms)

    def _add(self, reduced: Tensor) -> None:
        """In a stream that FSDP waits for at the end of backward."""
        self._norms.append(torch.linalg.vector_norm(reduced))


def squared_norm(gradients: list[Tensor]) -> Tensor:
    """As a scalar of fp64."""
    norms = torch._foreach_norm(gradients, 2, torch.float32)  # noqa: SLF001  torch clips with it
    return _sum_of_squares(norms)


def _sum_of_squares(norms: Sequence[Tensor]) -> Tensor:
    return torch.stack(tuple(norms)).double().square().sum()
