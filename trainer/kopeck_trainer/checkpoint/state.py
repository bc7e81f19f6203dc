"""What a checkpoint holds: weights and optimizer, under names that do not depend on sharding."""

from dataclasses import dataclass
from typing import Any

from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.optim import Optimizer


@dataclass(frozen=True, kw_only=True)
class TrainedState:
    model: nn.Module
    optimizer: Optimizer

    def read(self) -> dict[str, Any]:
        """This rank's shards, in place: loading into them loads into the model."""
        model, optimizer = get_state_dict(self.model, self.optimizer)
        return {"model": model, "optimizer": optimizer}

    def write(self, state: dict[str, Any]) -> None:
        set_state_dict(
            self.model,
            self.optimizer,
            model_state_dict=state["model"],
            optim_state_dict=state["optimizer"],
        )
