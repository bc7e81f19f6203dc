"""Whether a compiled model computes what the eager one computes.

The same batch, random numbers and weights; the loss and the gradient's norm over all ranks are
compared. Nothing is updated, so no sample is consumed.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from kopeck_trainer.agreement import gathered
from kopeck_trainer.compilation.blocks import Blocks
from kopeck_trainer.config import CompileMode

LOSS_TOLERANCE = 1e-3
NORM_TOLERANCE = 1e-2
"""Relative, both."""

ROUNDING = 1e-6
"""Absolute: below it a loss or a norm is nothing but rounding."""

EAGER_MEMORY_RATIO = 1.4
"""Eager keeps what compiled recomputes or fuses away, of the compiled peak."""


@dataclass(frozen=True, kw_only=True)
class Probe:
    """One forward and backward of one batch on each rank."""

    loss: float
    gradient_norm: float
    is_random: bool
    """It drew random numbers, as dropout does."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What became of the comparison."""

    options: dict[str, Any]
    """Of Inductor, with which the mode is to be used."""
    mismatch: str | None = None
    """How the results differ whatever the options; None where they agree or were not compared."""
    note: str | None = None
    """What the log should say."""


@dataclass(frozen=True, kw_only=True)
class Ladder:
    """Plain compiled → with the precision casts of eager → eager."""

    blocks: Blocks
    probe: Callable[[], Probe]
    device: torch.device

    def climb(self, mode: CompileMode) -> Verdict:
        """How `mode` can be used. The blocks are left in that mode."""
        compiled = self._compiled(mode, {})
        if not eager_fits(self.device):
            return Verdict(options={}, note="not compared with eager, which may not fit in memory")
        options: dict[str, Any] = {}
        if compiled.is_random:  # Inductor's random numbers are others than those of eager
            options["fallback_random"] = True
            compiled = self._compiled(mode, options)
        eager = self._eager()
        if agree(compiled, eager):
            self.blocks.set_mode(mode)
            return Verdict(options={})
        casts = {"emulate_precision_casts": True}
        emulated = self._compiled(mode, options | casts)
        self.blocks.set_mode(mode, **casts)
        said = f"{mode} differs from eager: {_differences(compiled, eager)}"
        if agree(emulated, eager):
            return Verdict(
                options=casts, note=f"{said}; emulating eager's precision casts it agrees"
            )
        return Verdict(options=casts, mismatch=said)

    def _compiled(self, mode: CompileMode, options: dict[str, Any]) -> Probe:
        self.blocks.set_mode(mode, **options)
        return self.probe()

    def _eager(self) -> Probe:
        self.blocks.set_mode("off")
        return self.probe()


def agree(one: Probe, other: Probe) -> bool:
    return _close(one.loss, other.loss, LOSS_TOLERANCE) and _close(
        one.gradient_norm, other.gradient_norm, NORM_TOLERANCE
    )


def eager_fits(device: torch.device) -> bool:
    """Whether an eager step surely fits on all ranks, by the peak of a compiled one.

    Of one with a memory budget, which eager has not, nothing can be told.
    """
    fits = True
    if device.type == "cuda":
        has_budget = torch._functorch.config.activation_memory_budget < 1  # noqa: SLF001
        total_bytes = torch.cuda.get_device_properties(device).total_memory
        peak_bytes = torch.cuda.max_memory_allocated(device)
        fits = not has_budget and peak_bytes * EAGER_MEMORY_RATIO <= total_bytes
    return all(gathered(fits))


def _close(one: float, other: float, tolerance: float) -> bool:
    """Where both are not finite compiling is not to blame."""
    if not (math.isfinite(one) or math.isfinite(other)):
        return True
    return math.isclose(one, other, rel_tol=tolerance, abs_tol=ROUNDING)


def _differences(compiled: Probe, eager: Probe) -> str:
    return (
        f"loss {compiled.loss:.6g} compiled, {eager.loss:.6g} eager, "
        f"gradient norm {compiled.gradient_norm:.6g} compiled, {eager.gradient_norm:.6g} eager"
    )
