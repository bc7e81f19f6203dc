"""From the user's plain model to one that trains sharded. The order matters."""

from collections.abc import Sequence

import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

from kopeck_trainer.config import Precision, TrainingConfig
from kopeck_trainer.initialise import Initialiser
from kopeck_trainer.meta import with_parameters_on_meta
from kopeck_trainer.task import TrainingTask


def parallelize(
    task: TrainingTask, training: TrainingConfig, mesh: DeviceMesh, device: torch.device
) -> nn.Module:
    """The model of `task` on all ranks of `mesh`, an FSDPModule with its first values."""
    model = with_parameters_on_meta(task.model)
    blocks = find_blocks(task, model)
    policy = mixed_precision(training.precision)
    for block in blocks:
        if block is not model:
            fully_shard(block, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    Initialiser(device=device, seed=training.seed, init=task.init).fill(model)
    return model


def find_blocks(task: TrainingTask, model: nn.Module) -> Sequence[nn.Module]:
    """What is compiled and sharded piece by piece, see `TrainingTask.blocks`."""
    if task.blocks is not None:
        return task.blocks(model)
    lists = [module for module in model.modules() if _is_list_of_one_class(module)]
    return list(max(lists, key=_parameter_count).children()) if lists else [model]


def mixed_precision(precision: Precision) -> MixedPrecisionPolicy:
    """Masters, gradients and their reduction are fp32 in both.

    `reduce_dtype` is always set: what None means differs between torch 2.11 and 2.15.
    """
    compute = torch.bfloat16 if precision == "bf16" else torch.float32
    return MixedPrecisionPolicy(param_dtype=compute, reduce_dtype=torch.float32)


def _is_list_of_one_class(module: nn.Module) -> bool:
    return isinstance(module, nn.ModuleList) and len({type(child) for child in module}) == 1


def _parameter_count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())
