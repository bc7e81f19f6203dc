"""How the parameters of a model are spread over the ranks."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed._composable.replicate_with_fsdp import replicate
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.utils._pytree import tree_map_only

from kopeck_trainer.config import ShardingConfig

GATHERED_SHARE = 0.1
"""Of a device's memory: `auto` keeps all weights gathered from forward to backward up to this."""


@dataclass(frozen=True, kw_only=True)
class Sharding:
    """The job's settings on the ranks of this attempt."""

    config: ShardingConfig
    workers: int
    ranks_per_worker: int
    device: torch.device
    dtype: torch.dtype
    """Of compute."""

    @property
    def replicas(self) -> int:
        """Ranks that hold the same part of each parameter."""
        return {
            "replicate": self.workers * self.ranks_per_worker,
            "hybrid": self.workers,
        }.get(self.config.strategy, 1)

    @property
    def shards(self) -> int:
        """Parts of each parameter, one for each rank of a replica."""
        return self.workers * self.ranks_per_worker // self.replicas

    def apply(self, model: nn.Module, blocks: Sequence[nn.Module]) -> None:
        """Each block is gathered and reduced by itself, so that others compute meanwhile."""
        if self.config.strategy == "auto" and self.workers * self.ranks_per_worker == 1:
            self._cast_inputs(model, blocks)
        elif self.config.strategy == "replicate":
            self._replicate(model, blocks)
        else:
            self._shard(model, blocks)

    def _cast_inputs(self, model: nn.Module, blocks: Sequence[nn.Module]) -> None:
        """All that is left to do for one rank, which FSDP would do too."""
        for module in {model, *blocks}:
            module.register_forward_pre_hook(self._cast, with_kwargs=True)

    def _cast(self, _module: nn.Module, args: Any, kwargs: Any) -> Any:
        return tree_map_only(Tensor, self._cast_float, (args, kwargs))

    def _cast_float(self, tensor: Tensor) -> Tensor:
        return tensor.to(self.dtype) if tensor.is_floating_point() else tensor

    def _replicate(self, model: nn.Module, blocks: Sequence[nn.Module]) -> None:
        mesh = self._mesh()
        for module in (*own_groups(model, blocks), model):
            replicate(module, mesh=mesh, mp_policy=self._precision())

    def _shard(self, model: nn.Module, blocks: Sequence[nn.Module]) -> None:
        mesh = self._mesh()
        reshard = self._reshards(model)
        for module in own_groups(model, blocks):
            # What is outside of the blocks is used at the ends, where nothing else needs memory.
            fully_shard(
                module,
                mesh=mesh,
                mp_policy=self._precision(),
                reshard_after_forward=reshard and module in blocks,
            )
        fully_shard(model, mesh=mesh, mp_policy=self._precision(), reshard_after_forward=False)

    def _mesh(self) -> DeviceMesh:
        """All ranks in a row; `hybrid` shards along the second dimension of two."""
        if self.config.strategy != "hybrid":
            return init_device_mesh(self.device.type, (self.workers * self.ranks_per_worker,))
        sizes = (self.workers, self.ranks_per_worker)
        return init_device_mesh(self.device.type, sizes, mesh_dim_names=("replicate", "shard"))

    def _precision(self) -> MixedPrecisionPolicy:
        """Masters, gradients and their reduction are fp32.

        `reduce_dtype` is always set: what None means differs between torch 2.11 and 2.15.
        """
        return MixedPrecisionPolicy(param_dtype=self.dtype, reduce_dtype=torch.float32)

    def _reshards(self, model: nn.Module) -> bool:
        """Whether a block's gathered weights are freed after its forward, and gathered again."""
        if self.config.reshard_after_forward is not None:
            return self.config.reshard_after_forward
        if self.device.type != "cuda":
            return True
        gathered = _elements(model.parameters()) * self.dtype.itemsize
        memory = torch.cuda.get_device_properties(self.device).total_memory
        return gathered > memory * GATHERED_SHARE


def own_groups(model: nn.Module, blocks: Sequence[nn.Module]) -> list[nn.Module]:
    """What is gathered by itself; the root gathers the rest before anything else can start.

    The blocks, and outside of them each module, such as embedding or head, that is as large as
    one; but none that shares a parameter with others, which FSDP gathers in one group alone.
    """
    inside = {module for block in blocks for module in block.modules()}
    large = max(_elements(block.parameters()) for block in blocks)
    owned = {block: set(block.parameters()) for block in blocks} | {
        module: set(module.parameters(recurse=False))
        for module in model.modules()
        if module not in inside
    }
    owners = Counter(parameter for own in owned.values() for parameter in own)
    return [
        module
        for module, own in owned.items()
        if module is not model
        and (module in blocks or _elements(own) >= large)
        and all(owners[parameter] == 1 for parameter in own)
    ]


def _elements(parameters: Iterable[nn.Parameter]) -> int:
    return sum(parameter.numel() for parameter in parameters)
