"""Trainings of a few steps by the trainer's own parts, for functions that run on ranks."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from kopeck_trainer.batches import Batches
from kopeck_trainer.config import CompileConfig, ShardingConfig, TrainConfig, TrainingConfig
from kopeck_trainer.optimizer_step import OptimizerStep
from kopeck_trainer.parallelize import compute_dtype, find_blocks, parallelize
from kopeck_trainer.phases import PhaseClock
from kopeck_trainer.reading import Reader
from kopeck_trainer.save_wish import SaveWish
from kopeck_trainer.schedule import accumulation_steps
from kopeck_trainer.sharding import Sharding
from kopeck_trainer.step_split import StepSplit
from kopeck_trainer.stop_request import StopRequest
from kopeck_trainer.task import TrainingTask
from kopeck_trainer.timeline import HostTimeline
from kopeck_trainer.update import prepare_optimizer, update_by
from kopeck_trainer.windows.wish import WindowWish
from kopeck_trainer.wishes import Wishes
from kopeck_trainer.working_weights import working_weights
from tests.unit.trainer.builders import toy

TRAINING = TrainingConfig(
    global_batch_size=12,
    micro_batch_size=2,
    steps=3,
    precision="fp32",
    compile=CompileConfig(mode="off"),
    seed=3,
)
CPU = torch.device("cpu")


def with_sharding(
    training: TrainingConfig, strategy: Any, *, reshard: bool | None = None
) -> TrainingConfig:
    config = ShardingConfig(strategy=strategy, reshard_after_forward=reshard)
    return replace(training, sharding=config)


def a_sharding(training: TrainingConfig) -> Sharding:
    """Two ranks form one worker, four form two."""
    ranks = torch.distributed.get_world_size()
    workers = 2 if ranks == 4 else 1
    return Sharding(
        config=training.sharding,
        workers=workers,
        ranks_per_worker=ranks // workers,
        device=CPU,
        dtype=compute_dtype(training.precision),
    )


def sharded(task: TrainingTask, training: TrainingConfig = TRAINING) -> nn.Module:
    return parallelize(task, training, a_sharding(training))


def full(model: nn.Module) -> dict[str, list[float]]:
    """All values of the model, from the shards of all ranks."""
    return {name: whole(value).flatten().tolist() for name, value in model.named_parameters()}


def whole(tensor: Tensor) -> Tensor:
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def the_toy() -> TrainingTask:
    return toy.build(TrainConfig())


def a_step(
    training: TrainingConfig, task: TrainingTask, model: nn.Module, optimizer_of: Any
) -> OptimizerStep:
    optimizer = optimizer_of(model.named_parameters(), lr=0.01)
    prepare_optimizer(optimizer, model)
    clips = training.max_grad_norm is not None
    weights = working_weights(model, compute_dtype(training.precision), clips=clips)
    return OptimizerStep(
        task=task,
        model=model,
        weights=weights,
        update=update_by(optimizer, weights, clips=clips),
        max_grad_norm=training.max_grad_norm,
        ranks=torch.distributed.get_world_size(),
        replicas=a_sharding(training).replicas,
        device=CPU,
        before_update=lambda: None,
        split=StepSplit(PhaseClock("compute"), HostTimeline()),
    )


def the_reader(training: TrainingConfig, task: TrainingTask) -> Reader:
    used = len(task.dataset)
    return Reader(task=task, seed=training.seed, used_samples=used, padding=None)


def the_batches(training: TrainingConfig, task: TrainingTask) -> Batches:
    ranks, rank = torch.distributed.get_world_size(), torch.distributed.get_rank()
    per_step = accumulation_steps(training.global_batch_size, training.micro_batch_size, ranks)
    reader = the_reader(training, task)
    return Batches(
        reader=reader,
        source=reader,
        micro_batch=training.micro_batch_size,
        per_step=per_step,
        rank=rank,
        ranks=ranks,
        device=CPU,
        split=StepSplit(PhaseClock("compute"), HostTimeline()),
    )


def no_wishes() -> Wishes:
    return Wishes(
        stop=StopRequest(),
        save=SaveWish(every_seconds=None, annotations=None),
        window=WindowWish(every_seconds=None),
    )


def losses(
    training: TrainingConfig,
    optimizer_of: Any = torch.optim.AdamW,
    task_of: Callable[[], TrainingTask] = the_toy,
    backend: str | None = None,
) -> list[float]:
    """The losses of some steps, and the sum of all weights after them.

    With a `backend` of torch.compile each block is compiled in one piece, or it raises.
    """
    task = task_of()
    model = sharded(task, training)
    for block in find_blocks(task, model) if backend else ():
        block.compile(backend=backend, fullgraph=True, dynamic=False)
    step = a_step(training, task, model, optimizer_of)
    batches = the_batches(training, task)
    wishes = no_wishes()
    results = [
        step.run(batches.of_step(index * training.global_batch_size), batches.per_step, wishes)
        .read()
        .loss
        for index in range(training.steps or 0)
    ]
    return [*results, sum(sum(values) for values in full(model).values())]
