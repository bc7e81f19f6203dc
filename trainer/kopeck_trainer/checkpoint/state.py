"""What a checkpoint holds: weights and optimizer, under names that do not depend on sharding."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.tensor import DTensor
from torch.optim import Optimizer
from torch.utils._pytree import tree_map_only

from kopeck_trainer.float8 import is_wrapped, plain
from kopeck_trainer.working_weights import local


@dataclass(frozen=True, kw_only=True)
class TrainedState:
    model: nn.Module
    optimizer: Optimizer

    def read(self) -> dict[str, Any]:
        """This rank's shards, in place: loading into them loads into the model."""
        model, optimizer = get_state_dict(self.model, self.optimizer)
        return {"model": tree_map_only(DTensor, _plain, model), "optimizer": optimizer}

    def snapshot(self) -> dict[str, Any]:
        """As `read`, for a copy that is taken before the next update of the weights.

        The next forward may change the buffers, so of these it has a copy already.
        """
        content = self.read()
        buffers = {buffer.untyped_storage().data_ptr() for buffer in self.model.buffers()}
        content["model"] = {
            name: value.clone() if _storage(value) in buffers else value
            for name, value in content["model"].items()
        }
        return content

    def is_finite(self) -> bool:
        """Whether this rank's shards of all trained weights are. Waits for the device."""
        masters = [each for group in self.optimizer.param_groups for each in group["params"]]
        shards = [shard for each in masters if (shard := local(each.detach())).numel()]
        return bool(torch.nn.utils.get_total_norm(shards, torch.inf).isfinite())

    def write(self, state: dict[str, Any]) -> None:
        set_state_dict(
            self.model,
            self.optimizer,
            model_state_dict=state["model"],
            optim_state_dict=state["optimizer"],
        )


def _plain(tensor: DTensor) -> DTensor:
    """In the memory of `tensor`, so that any precision can go on with it."""
    shard = tensor.to_local()
    if not is_wrapped(shard):
        return tensor
    return DTensor.from_local(
        plain(shard),
        tensor.device_mesh,
        tensor.placements,
        run_check=False,
        shape=tensor.shape,
        stride=tensor.stride(),
    )


def _storage(value: Any) -> int | None:
    """None of what has no storage of its own, and of the parameters of FSDP."""
    is_plain = isinstance(value, Tensor) and not isinstance(value, DTensor)
    return value.untyped_storage().data_ptr() if is_plain else None
