"""From the user's plain model to one that trains on all ranks. The order matters."""

from collections.abc import Sequence

import torch
from torch import nn

from kopeck_trainer.activations import spare_activations
from kopeck_trainer.config import Precision, TrainingConfig
from kopeck_trainer.float8 import use_float8
from kopeck_trainer.initialise import Initialiser
from kopeck_trainer.meta import with_parameters_on_meta
from kopeck_trainer.sharding import Sharding
from kopeck_trainer.task import TrainingTask


def parallelize(task: TrainingTask, training: TrainingConfig, sharding: Sharding) -> nn.Module:
    """The model of `task` on all ranks, with its first values."""
    model = with_parameters_on_meta(task.model)
    if training.precision == "fp8":
        blocks = find_blocks(task, model)
        use_float8(model, blocks, sharding.device, shards=sharding.shards)
    blocks = find_blocks(task, model)
    spare_activations(training.activations, blocks)
    sharding.apply(model, blocks)
    Initialiser(device=sharding.device, seed=training.seed, init=task.init).fill(model)
    return model


def find_blocks(task: TrainingTask, model: nn.Module) -> Sequence[nn.Module]:
    """What is compiled and sharded piece by piece, see `TrainingTask.blocks`."""
    if task.blocks is not None:
        return task.blocks(model)
    lists = [module for module in model.modules() if _is_list_of_one_class(module)]
    return list(max(lists, key=_parameter_count).children()) if lists else [model]


def compute_dtype(precision: Precision) -> torch.dtype:
    """Of forward and backward, products in fp8 apart. Masters are fp32 in any case."""
    return torch.float32 if precision == "fp32" else torch.bfloat16


def _is_list_of_one_class(module: nn.Module) -> bool:
    return isinstance(module, nn.ModuleList) and len({type(child) for child in module}) == 1


def _parameter_count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())
