"""Matrix products in 8-bit floating point, by torchao, each tensor scaled by its largest number.

Masters stay fp32, everything else computes in bf16. Scales by row are closer to bf16, and slower
than bf16 at the widths that most models have.
"""

import importlib
from collections import Counter
from collections.abc import Sequence
from types import ModuleType

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from kopeck_trainer.errors import ConfigurationError

FIELD = "spec.training.precision"

MULTIPLE = 16
"""Of both widths of a layer, which the products of GPUs ask for."""

OLDEST_CAPABILITY = (8, 9)
"""Ada; Hopper and Blackwell are newer."""


def use_float8(
    model: nn.Module, blocks: Sequence[nn.Module], device: torch.device, *, shards: int
) -> None:
    """Convert the linear layers of `blocks`; what is outside, such as embedding and head, is left.

    To be done first of all: checkpointing, compilation and sharding take the modules as they are.
    Names and parameters stay. On a CPU the products are emulated, which is slow. Weights that
    `shards` ranks share evenly are gathered in 8 bits, which halves what is sent.

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
    gathered = _gathered(model, chosen, shards)
    for layers, gathers in ((gathered, True), (chosen - gathered, False)):
        float8.convert_to_float8_training(
            model,
            module_filter_fn=lambda module, _name, layers=layers: module in layers,
            config=float8.Float8LinearConfig(
                emulate=device.type != "cuda", enable_fsdp_float8_all_gather=gathers
            ),
        )


def gathers_float8(model: nn.Module) -> bool:
    """Whether weights of a sharded model are gathered in 8 bits."""
    return any(
        isinstance(each, DTensor) and is_wrapped(each.to_local()) for each in model.parameters()
    )


def share_scales(model: nn.Module) -> None:
    """Find the scales of all weights by one reduction of all ranks, not by one for each weight."""
    _torchao().precompute_float8_dynamic_scale_for_fsdp(model)


def is_wrapped(tensor: Tensor) -> bool:
    """Whether torchao has wrapped a rank's part of a weight, to gather it in 8 bits."""
    return hasattr(tensor, "_tensor")


def plain(tensor: Tensor) -> Tensor:
    """The numbers of a rank's part, in the same memory, wrapped or not."""
    inner: Tensor = getattr(tensor, "_tensor", tensor)
    return inner


def convertible(model: nn.Module, blocks: Sequence[nn.Module]) -> set[nn.Linear]:
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


def _gathered(model: nn.Module, chosen: set[nn.Linear], shards: int) -> set[nn.Linear]:
    """Those of `chosen` whose weights torchao can wrap: a wrapped one is tied to no other."""
    owners = Counter(
        id(weight)
        for module in model.modules()
        for weight in module._parameters.values()  # noqa: SLF001  tied ones at each owner
    )
    return {
        each
        for each in chosen
        if shards > 1 and each.out_features % shards == 0 and owners[id(each.weight)] == 1
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
