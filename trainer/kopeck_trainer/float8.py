"""Matrix products in 8-bit floating point, by torchao, each tensor scaled by its largest number.

Masters stay fp32, everything else computes in bf16. Scales by row are closer to bf16, and slower
than bf16 at the widths that most models have.
"""

import importlib
from collections.abc import Sequence
from types import ModuleType

import torch
from torch import nn

from kopeck_trainer.errors import ConfigurationError

FIELD = "spec.training.precision"

MULTIPLE = 16
"""Of both widths of a layer, which the products of GPUs ask for."""

OLDEST_CAPABILITY = (8, 9)
"""Ada; Hopper and Blackwell are newer."""


def use_float8(model: nn.Module, blocks: Sequence[nn.Module], device: torch.device) -> None:
    """Convert the linear layers of `blocks`; what is outside, such as embedding and head, is left.

    To be done first of all: checkpointing, compilation and sharding take the modules as they are.
    Names and parameters stay. On a CPU the products are emulated, which is slow.

    Raises ConfigurationError where torchao is missing, or the device or the model has no use of it.
    """
    float8 = _torchao()
    if device.type == "cuda":
        refuse_old(torch.cuda.get_device_name(device), torch.cuda.get_device_capability(device))
    chosen = convertible(model, blocks)
    if not chosen:
        raise ConfigurationError(
            FIELD,
            f"the blocks of the model have no nn.Linear whose widths are multiples of {MULTIPLE}",
            "write bf16",
        )
    float8.convert_to_float8_training(
        model,
        module_filter_fn=lambda module, _name: module in chosen,
        config=float8.Float8LinearConfig(emulate=device.type != "cuda"),
    )


def convertible(model: nn.Module, blocks: Sequence[nn.Module]) -> set[nn.Module]:
    """Of a model that is its own block the last linear layer is the head."""
    linears = [
        module
        for block in blocks
        for module in block.modules()
        if type(module) is nn.Linear  # others may compute something else
    ]
    if model in blocks:
        del linears[-1:]
    return {
        linear
        for linear in linears
        if linear.in_features % MULTIPLE == 0 and linear.out_features % MULTIPLE == 0
    }


def refuse_old(name: str, capability: tuple[int, int]) -> None:
    """Raises ConfigurationError where a GPU of that name has no products in 8 bits."""
    if capability < OLDEST_CAPABILITY:
        raise ConfigurationError(
            FIELD,
            f"{name} has no fp8",
            "write bf16, or take GPUs of compute capability 8.9 or newer",
        )


def _torchao() -> ModuleType:
    try:
        return importlib.import_module("torchao.float8")  # it takes seconds, few trainings need it
    except ImportError as error:
        raise ConfigurationError(
            FIELD, f"fp8 needs torchao ({error})", "install kopeck[trainer], or write bf16"
        ) from None
