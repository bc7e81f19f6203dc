"""What blocks keep of their forward for their backward, and what they compute again there."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import torch
from torch import nn
from torch.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
)

from kopeck_trainer.config import ActivationsConfig

_ATEN = torch.ops.aten

ATTENTION = frozenset(
    {
        _ATEN._scaled_dot_product_cudnn_attention.default,  # noqa: SLF001
        _ATEN._scaled_dot_product_efficient_attention.default,  # noqa: SLF001
        _ATEN._scaled_dot_product_flash_attention.default,  # noqa: SLF001
        _ATEN._scaled_dot_product_flash_attention_for_cpu.default,  # noqa: SLF001
        _ATEN._scaled_dot_product_fused_attention_overrideable.default,  # noqa: SLF001
    }
)

RIGHT_FACTOR = {
    _ATEN.mm.default: 1,
    _ATEN.addmm.default: 2,
    _ATEN._scaled_mm.default: 1,  # noqa: SLF001  in fp8
}
"""Where a matrix product has its right factor among its arguments."""


def spare_activations(config: ActivationsConfig, blocks: Sequence[nn.Module]) -> None:
    """Before compilation and sharding. Names of modules and parameters stay.

    The budget is read by the compiler, for all that this process compiles; eager knows none.
    """
    if config.mode == "budget":
        torch._functorch.config.activation_memory_budget = config.memory_budget  # noqa: SLF001
    elif config.mode == "full":
        _recompute(blocks, _checkpoint)
    elif config.mode == "selective":
        contexts = partial(create_selective_checkpoint_contexts, policy)
        _recompute(blocks, partial(_checkpoint, context_fn=contexts))


def policy(_context: Any, operator: Any, *args: Any, **_kwargs: Any) -> CheckpointPolicy:
    """What `selective` keeps: where a byte spares the most arithmetic.

    Of a product that is as many operations for each number as it sums over, so those are kept that
    are not wider than that: of a Llama the output projections of attention and feed-forward, not
    what goes into its activation function. Of attention it is many more, at a width of the model.
    """
    if operator in ATTENTION:
        return CheckpointPolicy.MUST_SAVE
    if operator in RIGHT_FACTOR:
        summed, width = args[RIGHT_FACTOR[operator]].shape
        if width <= summed:
            return CheckpointPolicy.MUST_SAVE
    return CheckpointPolicy.PREFER_RECOMPUTE


_checkpoint = partial(checkpoint, use_reentrant=False)


def _recompute(blocks: Sequence[nn.Module], run: Callable[..., Any]) -> None:
    """Each class of blocks gets one subclass, so that its blocks still share a graph.

    A module around each block, which is what torch offers, would be in the names of parameters.
    """
    kinds = {kind: _recomputing(kind, run) for kind in {type(block) for block in blocks}}
    for block in blocks:
        block.__class__ = kinds[type(block)]


def _recomputing(kind: type[nn.Module], run: Callable[..., Any]) -> type[nn.Module]:
    def forward(block: nn.Module, *args: Any, **kwargs: Any) -> Any:
        return run(partial(kind.forward, block), *args, **kwargs)

    return cast("type[nn.Module]", type(kind.__name__, (kind,), {"forward": forward}))
