"""How much arithmetic a sample takes, counted on the model itself without computing anything."""

from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only
from torch.utils.data import default_collate
from torch.utils.flop_counter import FlopCounterMode

from kopeck_trainer.task import TrainingTask

FORWARDS_PER_STEP = 3
"""The backward is two products for each of the forward's. Recomputation is no useful work."""


def flops_per_sample(task: TrainingTask) -> float | None:
    """Floating-point operations that training needs for a sample like the first one.

    Forward and loss are counted on meta, attention as if it were not causal, as torchtitan does.
    None where the task does something that needs numbers.
    """
    collate = task.collate or default_collate
    batch = tree_map_only(Tensor, _on_meta, collate([task.dataset[0]]))
    with torch.random.fork_rng(), torch.no_grad(), FlopCounterMode(display=False) as counter:
        try:
            with torch.device("meta"):
                _forward(task, batch)
        except Exception:  # noqa: BLE001  the user's code may raise anything where numbers are missing
            return None
    return float(FORWARDS_PER_STEP * counter.get_total_flops())


def _forward(task: TrainingTask, batch: Any) -> None:
    inputs = batch[0] if isinstance(batch, list | tuple) else batch
    task.loss(task.model()(inputs), batch)


def _on_meta(tensor: Tensor) -> Tensor:
    return tensor.to("meta")
