"""The update of the weights, which scales the gradients as it reads them where it can."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.optim import SGD, Adam, AdamW, Optimizer

from kopeck_trainer.errors import ConfigurationError
from kopeck_trainer.working_weights import WorkingWeights, local

SCALING = (Adam, AdamW, SGD)
"""Their fused kernels scale the gradients; a class that is derived from them may not."""
FUSED_WHEN_SHARDED = (Adam, AdamW)
"""torch 2.11 to 2.15 have no rule for the fused kernels of others, such as SGD, and DTensors."""


class TorchUpdate:
    """By any optimizer."""

    def __init__(self, optimizer: Optimizer, weights: WorkingWeights, *, clips: bool) -> None:
        self._optimizer = optimizer
        self._weights = weights
        self._clips = clips
        self._scales = type(optimizer) in SCALING and all(
            group["fused"] for group in optimizer.param_groups
        )

    def gradients(self) -> list[Tensor]:
        """This rank's parts of all gradients, after the last micro-batch of a step."""
        self._weights.give_gradients()
        masters = [master for group in self._optimizer.param_groups for master in group["params"]]
        return [local(master.grad) for master in masters if master.grad is not None]

    def apply(self, gradients: list[Tensor], factor: Tensor) -> None:
        """Update by `gradients` times `factor`, a scalar; not at all where that is NaN."""
        if self._scales:
            self._scaled_by(1 / factor, factor.isnan().float())
            self._optimizer.step()
            self._scaled_by(None, None)
        elif not (self._clips and factor.isnan()):  # the host waits, which fused kernels spare it
            torch._foreach_mul_(gradients, factor)
            self._optimizer.step()
        self.forget_gradients()
        self._weights.refresh()

    def forget_gradients(self) -> None:
        self._optimizer.zero_grad()

    def _scaled_by(self, scale: Tensor | None, found_nan: Tensor | None) -> None:
        """Where torch's gradient scaler leaves them for the kernels of fused optimizers."""
        optimizer: Any = self._optimizer
        optimizer.grad_scale, optimizer.found_inf = scale, found_nan


class FusedAdamW:
    """By one kernel of our own for each tensor: gradient, master, averages and working weight.

    The state is that of `torch.optim.AdamW`, which can go on with it.
    """

    def __init__(self, optimizer: AdamW, weights: WorkingWeights) -> None:
        self._optimizer = optimizer
        self._weights = weights

    def gradients(self) -> list[Tensor]:
        """This rank's parts of all gradients, after the last micro-batch of a step."""
        return [
            gradient
            for group in self._optimizer.param_groups
            for _, gradient in self._trained(group)
        ]

    @torch.no_grad()
    def apply(self, _gradients: list[Tensor], factor: Tensor) -> None:
        """Update by the gradients times `factor`, a scalar; not at all where that is NaN."""
        updates: dict[nn.Parameter, Callable[[], None]] = {}
        for group in self._optimizer.param_groups:
            if trained := self._trained(group):
                updates |= self._updates(group, trained, factor)
        self._weights.update(updates)
        self.forget_gradients()

    def forget_gradients(self) -> None:
        self._optimizer.zero_grad()
        self._weights.forget_gradients()

    def _trained(self, group: dict[str, Any]) -> list[tuple[nn.Parameter, Tensor]]:
        """The parameters of `group` that have a gradient, and it."""
        found = ((master, self._weights.gradient(master)) for master in group["params"])
        return [(master, gradient) for master, gradient in found if gradient is not None]

    def _updates(
        self, group: dict[str, Any], trained: list[tuple[nn.Parameter, Tensor]], factor: Tensor
    ) -> dict[nn.Parameter, Callable[[], None]]:
        """By master."""
        from kopeck_trainer.adamw_kernel import adamw  # noqa: PLC0415  Triton is not for CPUs

        states = [self._state(master) for master, _ in trained]
        corrections = _corrections([state["step"] for state in states], group["betas"], factor)
        return {
            master: partial(
                adamw,
                local(master),
                gradient,
                (local(state["exp_avg"]), local(state["exp_avg_sq"])),
                self._weights.working(master),
                factor=factor,
                corrections=corrections,
                index=index,
                learning_rate=group["lr"],
                betas=group["betas"],
                epsilon=group["eps"],
                weight_decay=group["weight_decay"],
            )
            for index, ((master, gradient), state) in enumerate(zip(trained, states, strict=True))
        }

    def _state(self, master: nn.Parameter) -> dict[str, Tensor]:
        state: dict[str, Tensor] = self._optimizer.state[master]
        if not state:
            state["step"] = torch.zeros((), device=master.device)
            state["exp_avg"] = torch.zeros_like(master)
            state["exp_avg_sq"] = torch.zeros_like(master)
        return state


Update = TorchUpdate | FusedAdamW


def update_by(optimizer: Optimizer, weights: WorkingWeights, *, clips: bool) -> Update:
    """The fastest that computes what `optimizer` would. Without `clips` no factor is NaN."""
    if type(optimizer) is AdamW and all(map(_is_plain, optimizer.param_groups)):
        hooks: Any = optimizer
        if not (hooks._optimizer_step_pre_hooks or hooks._optimizer_step_post_hooks):  # noqa: SLF001
            return FusedAdamW(optimizer, weights)
    return TorchUpdate(optimizer, weights, clips=clips)


def prepare_optimizer(optimizer: Optimizer, model: nn.Module) -> None:
    """Before anything else has looked at the parameters of the parallelized `model`.

    Raises ConfigurationError where it cannot train them.
    """
    trained = {each for group in optimizer.param_groups for each in group["params"]}
    if trained - set(model.parameters()):
        raise ConfigurationError(
            "spec.entrypoint",
            "the optimizer of its task has parameters that are not those it was called with",
            "make it of the named parameters that it is called with",
        )
    for parameter in model.parameters():
        if parameter not in trained:  # else its gradient would be reduced, clipped by, and kept
            parameter.requires_grad = False
    _prefer_fused(optimizer)


def _prefer_fused(optimizer: Optimizer) -> None:
    """Where the choice was left open, one kernel updates all parameters."""
    kinds = FUSED_WHEN_SHARDED if _is_sharded(optimizer) else SCALING
    if type(optimizer) not in kinds:
        return
    for group in optimizer.param_groups:
        if group["fused"] is None and group["foreach"] is None and not group["differentiable"]:
            group["fused"] = True


def _is_sharded(optimizer: Optimizer) -> bool:
    return any(
        isinstance(each, DTensor) for group in optimizer.param_groups for each in group["params"]
    )


def _is_plain(group: dict[str, Any]) -> bool:
    """Whether our kernel knows all settings of a group of AdamW."""
    return (
        group["fused"]
        and not (group["amsgrad"] or group["maximize"])
        and not any(isinstance(value, Tensor) for value in (group["lr"], *group["betas"]))
        and all(
            each.device.type == "cuda" and each.dtype == torch.float32 for each in group["params"]
        )
    )


def _corrections(steps: list[Tensor], betas: tuple[float, float], factor: Tensor) -> Tensor:
    """Count one step, unless `factor` is NaN; 1 - beta ** step by beta and parameter, fp32."""
    counted = (~factor.isnan()).float()
    torch._foreach_add_(
        steps, [counted] * len(steps)
    )  # one tensor for all would be read by the host
    counts = torch.stack(steps).double()
    return torch.stack([1 - beta**counts for beta in betas]).float()
