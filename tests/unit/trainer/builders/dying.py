"""The toy, which dies in a given way and phase, in the fourth step of its process."""

import itertools
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
import toy
from torch import Tensor
from torch._dynamo.callback import on_compile_start

from kopeck_trainer import TrainConfig, TrainingTask
from kopeck_trainer.checkpoint import saving

STEP = 4


def build(config: TrainConfig) -> TrainingTask:
    """By the parameters `dieIn` and `by`, a signal's name or an exception's."""
    phase: str = config.parameters["dieIn"]
    die = _way_to_die(config.parameters.get("by", "SIGKILL"))
    task = toy.build(config)
    if phase == "startup":
        die()
    elif phase == "compile":
        on_compile_start(lambda _args: die())
    elif phase == "forward":
        task = replace(task, loss=_dying_loss(die))
    elif phase == "backward":
        task = replace(task, loss=_loss_dying_backward(die))
    elif phase == "optimizer":
        task = replace(task, optimizer=lambda named: _dying_optimizer(named, die))
    elif phase == "checkpoint":
        _die_before_the_second_manifest(die)
    return task


def _way_to_die(name: str) -> Callable[[], None]:
    def die() -> None:
        if name.startswith("SIG"):
            os.kill(os.getpid(), signal.Signals[name])
        raise {"MemoryError": MemoryError, "ValueError": ValueError}[name]("as asked")

    return die


def _dying_loss(die: Callable[[], None]) -> Callable[[Tensor, Any], tuple[Tensor, int]]:
    calls = itertools.count(1)

    def loss(output: Tensor, batch: Any) -> tuple[Tensor, int]:
        if next(calls) == STEP:
            die()
        return toy.squared_error(output, batch)

    return loss


def _loss_dying_backward(die: Callable[[], None]) -> Callable[[Tensor, Any], tuple[Tensor, int]]:
    calls = itertools.count(1)

    def loss(output: Tensor, batch: Any) -> tuple[Tensor, int]:
        if next(calls) == STEP:
            output.register_hook(lambda _gradient: die())
        return toy.squared_error(output, batch)

    return loss


def _dying_optimizer(named: Any, die: Callable[[], None]) -> torch.optim.Optimizer:
    calls = itertools.count(1)

    class Dying(torch.optim.AdamW):
        def step(self, closure: Any = None) -> Any:
            if next(calls) == STEP:
                die()
            return super().step(closure)

    return Dying(named, lr=0.01)


def _die_before_the_second_manifest(die: Callable[[], None]) -> None:
    calls = itertools.count(1)
    write_manifest = saving.write_manifest

    def write(*arguments: Any) -> None:
        if next(calls) == STEP // 2:
            die()
        write_manifest(*arguments)

    saving.write_manifest = write
