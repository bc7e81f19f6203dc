"""The weights that forward and backward compute with, and where their gradients arrive.

Between two steps a model holds its masters: what is trained, saved and loaded.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor

from kopeck_trainer.early_gather import EarlyGather
from kopeck_trainer.float8 import gathers_float8, plain, share_scales
from kopeck_trainer.gradient_norm import ReducedNorm, squared_norm

Updates = Mapping[nn.Parameter, Callable[[], None]]
"""What updates each master."""


class FsdpWeights:
    """FSDP makes them of the masters in each step, and reduces their gradients."""

    def __init__(
        self,
        model: FSDPModule,
        prepare: Callable[[], None] | None,
        early: EarlyGather | None,
        norm: ReducedNorm | None,
    ) -> None:
        """`prepare` is called before the weights are gathered for the first time in a step.

        Without `norm` that of the gradients is taken when it is asked for.
        """
        self._model = model
        self._prepare = prepare
        self._early = early
        self._norm = norm

    @contextmanager
    def micro_batch(self, index: int, micro_batches: int) -> Iterator[None]:
        """Around forward and backward. Only the last one of a step reduces the gradients."""
        if index == 0:
            if self._norm:
                self._norm.begin()
            if self._prepare:
                self._prepare()
        is_last = index == micro_batches - 1
        self._model.set_requires_gradient_sync(is_last)
        self._model.set_is_last_backward(is_last)
        yield

    def gradient(self, master: nn.Parameter) -> Tensor | None:
        """This rank's part of it, after the last micro-batch."""
        return None if master.grad is None else local(master.grad)

    def squared_norm(self, gradients: list[Tensor]) -> Tensor:
        """Of this rank's part of all gradients, a scalar of fp64."""
        return self._norm.square(gradients) if self._norm else squared_norm(gradients)

    def working(self, _master: nn.Parameter) -> Tensor | None:
        """What an update has to write beside the master."""
        return None

    def update(self, updates: Updates) -> None:
        """Call them."""
        if self._early:
            self._early.update(updates)
        else:
            _call(updates)

    def give_gradients(self) -> None:
        """The masters have them already."""

    def refresh(self) -> None:
        """FSDP does, in each step."""

    def forget_gradients(self) -> None:
        """The optimizer does."""


class WholeWeights:
    """Copies in the dtype of compute, kept beside the masters by a rank that has the whole model.

    The numbers are those of FSDP on one rank, which copies every weight and gradient twice.
    """

    def __init__(self, model: nn.Module, dtype: torch.dtype) -> None:
        self._owners = _owners(model)
        self._copies = {
            master: nn.Parameter(master.detach().to(dtype), requires_grad=master.requires_grad)
            for master in self._owners
            if master.is_floating_point() and master.dtype != dtype
        }

    @contextmanager
    def micro_batch(self, _index: int, micro_batches: int) -> Iterator[None]:
        """Around forward and backward. The gradients of several are added up in the masters'."""
        self._install(self._copies)
        try:
            yield
        finally:
            self._install({master: master for master in self._copies})
        if micro_batches > 1:
            self.give_gradients()

    def gradient(self, master: nn.Parameter) -> Tensor | None:
        """Of one micro-batch as backward left it, of several their sum."""
        copy = self._copies.get(master, master)
        return master.grad if copy.grad is None else copy.grad

    def squared_norm(self, gradients: list[Tensor]) -> Tensor:
        """Of all gradients, a scalar of fp64."""
        return squared_norm(gradients)

    def working(self, master: nn.Parameter) -> Tensor | None:
        """What an update has to write beside the master."""
        return self._copies.get(master)

    def update(self, updates: Updates) -> None:
        """Call them."""
        _call(updates)

    def give_gradients(self) -> None:
        """Add the gradients of the copies to the masters', in their dtype."""
        for master, copy in self._copies.items():
            if copy.grad is None:
                continue
            if master.grad is None:
                master.grad = copy.grad.to(master.dtype)
            else:
                master.grad.add_(copy.grad)
            copy.grad = None

    @torch.no_grad()
    def refresh(self) -> None:
        """After an update that wrote the masters alone."""
        for master, copy in self._copies.items():
            copy.copy_(master)

    def forget_gradients(self) -> None:
        for copy in self._copies.values():
            copy.grad = None

    def _install(self, weights: dict[nn.Parameter, nn.Parameter]) -> None:
        for master, weight in weights.items():
            for module, name in self._owners[master]:
                # Not setattr, which costs 20 µs each; FSDP swaps its parameters in this way too.
                module._parameters[name] = weight  # noqa: SLF001


WorkingWeights = FsdpWeights | WholeWeights


def working_weights(model: nn.Module, dtype: torch.dtype, *, clips: bool) -> WorkingWeights:
    """Those of a parallelized model whose masters have their values.

    With `clips` the norm of the gradients is asked for in each step.
    """
    if not isinstance(model, FSDPModule):
        return WholeWeights(model, dtype)
    norm = ReducedNorm(model) if clips else None
    if gathers_float8(model):  # by scales that are known after the whole update
        return FsdpWeights(model, partial(share_scales, model), None, norm)
    return FsdpWeights(model, None, EarlyGather(model), norm)


def local(tensor: Tensor) -> Tensor:
    """This rank's part."""
    return plain(tensor.to_local()) if isinstance(tensor, DTensor) else tensor


def _call(updates: Updates) -> None:
    for update in updates.values():
        update()


def _owners(model: nn.Module) -> dict[nn.Parameter, list[tuple[nn.Module, str]]]:
    """The modules that have each parameter, more than one where it is tied, and its name there."""
    owners: dict[nn.Parameter, list[tuple[nn.Module, str]]] = defaultdict(list)
    for module in model.modules():
        for name, parameter in module._parameters.items():  # noqa: SLF001  all owners of tied ones
            if parameter is not None:
                owners[parameter].append((module, name))
    return dict(owners)
