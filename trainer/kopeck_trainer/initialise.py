"""First values of a sharded model, the same at every world size.

Sharding first and calling `reset_parameters` on the shards, as is often seen, gives every rank
the same numbers in different places. Here each full parameter is filled from a seed of its own,
one module at a time, and each rank keeps its shard.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn
from torch.distributed.tensor import DTensor, distribute_tensor

from kopeck_trainer.errors import ConfigurationError
from kopeck_trainer.seeds import derived_seed

Init = Callable[[str, Tensor, Generator], None]


@dataclass(frozen=True, kw_only=True)
class Initialiser:
    """Gives a parallelized model, its parameters on meta, memory on `device` and first values."""

    device: torch.device
    seed: int
    init: Init | None
    """Fills one full parameter; None leaves it to the modules' `reset_parameters()`."""

    @torch.no_grad()
    def fill(self, model: nn.Module) -> None:
        """Raises ConfigurationError for a parameter that nothing fills."""
        first_names: dict[nn.Parameter, str] = {}
        ties = {
            name: first_names.setdefault(parameter, name)
            for name, parameter in model.named_parameters(remove_duplicate=False)
        }
        # What to_empty() does, but for buffers: they are real, and it would destroy them.
        model._apply(self._with_memory)  # type: ignore[no-untyped-call]  # noqa: SLF001
        _tie(model, ties)
        filled: set[int] = set()
        for path, module in model.named_modules():
            shards = dict(module.named_parameters(recurse=False))
            # A tied one has the values of its first owner.
            unfilled = {name for name, shard in shards.items() if id(shard) not in filled}
            filled |= {id(shard) for shard in shards.values()}
            if unfilled:
                self._fill_module(module, path, shards, unfilled)

    def _with_memory(self, tensor: Tensor) -> Tensor:
        if tensor.is_meta:
            return torch.empty_like(tensor, device=self.device)
        return tensor.to(self.device)

    def _fill_module(
        self, module: nn.Module, path: str, shards: dict[str, nn.Parameter], unfilled: set[str]
    ) -> None:
        """Full parameters stand in for all shards, and fill those that are `unfilled`."""
        for name, shard in shards.items():
            unset = torch.full(shard.shape, math.nan, dtype=shard.dtype, device=self.device)
            setattr(module, name, nn.Parameter(unset, requires_grad=shard.requires_grad))
        if self.init is None:
            self._reset(module, path)
        for name, shard in shards.items():
            full: Tensor = getattr(module, name).detach()
            setattr(module, name, shard)
            if name in unfilled:
                self._finish(f"{path}.{name}" if path else name, full)
                _keep_shard(shard, full)

    def _reset(self, module: nn.Module, path: str) -> None:
        """A module without `reset_parameters` is refused later, by what stays unset."""
        reset = getattr(module, "reset_parameters", None)
        if reset is not None:
            with torch.random.fork_rng([self.device] if self.device.type == "cuda" else []):
                torch.manual_seed(derived_seed(self.seed, path))
                reset()

    def _finish(self, name: str, full: Tensor) -> None:
        if self.init is not None:
            generator = Generator(self.device).manual_seed(derived_seed(self.seed, name))
            self.init(name, full, generator)
        if bool(torch.isnan(full).any()):
            raise ConfigurationError(
                "spec.entrypoint",
                f"parameter {name} of the model is never filled",
                "give its module reset_parameters(), or TrainingTask an init",
            )


def _tie(model: nn.Module, ties: dict[str, str]) -> None:
    """Give each parameter the object of its first name again: plain modules get one each.

    FSDP has tied them already.
    """
    for name, first_name in ties.items():
        parameter = model.get_parameter(first_name)
        if model.get_parameter(name) is not parameter:
            path, _, own_name = name.rpartition(".")
            setattr(model.get_submodule(path), own_name, parameter)


def _keep_shard(shard: Tensor, full: Tensor) -> None:
    if isinstance(shard, DTensor):
        own = distribute_tensor(full, shard.device_mesh, shard.placements, src_data_rank=None)
        shard.to_local().copy_(own.to_local())
    else:
        shard.copy_(full)
