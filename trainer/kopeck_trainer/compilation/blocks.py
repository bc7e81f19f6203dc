"""The blocks of a model and the mode in which they are compiled."""

import gc
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from kopeck_trainer.compilation.loss import Loss
from kopeck_trainer.config import CompileMode

GRAPHS_OF_A_SHAPE = 4
"""The first block's input may need no gradient; and the comparison with eager has options."""


@dataclass(frozen=True, kw_only=True)
class Blocks:
    """Compiled in place, so that state-dict keys stay clean and blocks of one class share a graph.

    The hooks of FSDP stay outside the graphs. Shapes are static: the loader keeps them so.
    """

    modules: Sequence[nn.Module]
    loss: Loss | None
    """None where it is not to be compiled. Whatever the mode, it is compiled as by `default`: to
    record it in a CUDA graph would take a copy of the model's output."""
    fails_on_graph_break: bool

    def set_mode(self, mode: CompileMode, **options: Any) -> None:
        """From the next call on. What was compiled in other modes is kept: going back is free.

        `options` are Inductor's, on top of those of the mode.
        """
        if mode == "off":
            for module in (*self.modules, *self.losses):
                module._compiled_call_impl = None  # noqa: SLF001  torch has no public way back
            return
        for block in self.modules:
            self._compile(block, mode, options)
        for loss in self.losses:
            loss.compile(
                dynamic=False, fullgraph=self.fails_on_graph_break, options=options or None
            )

    @property
    def losses(self) -> list[Loss]:
        """The one that is compiled, or none."""
        return [self.loss] if self.loss else []

    def _compile(self, block: nn.Module, mode: CompileMode, options: dict[str, Any]) -> None:
        """Mode and options exclude each other in torch; a mode is a set of options."""
        chosen: dict[str, Any] = {"mode": mode}
        if options:
            chosen = {"options": torch._inductor.list_mode_options(mode) | options}  # noqa: SLF001
        block.compile(dynamic=False, fullgraph=self.fails_on_graph_break, **chosen)


def allow_graphs(modes: int, shapes: int) -> None:
    """Torch stops to compile a function after eight graphs, all modes and shapes together."""
    limit = modes * shapes * GRAPHS_OF_A_SHAPE
    torch._dynamo.config.recompile_limit = max(8, limit)  # noqa: SLF001


def forget_graphs(device: torch.device) -> None:
    """Drop all that was compiled, and the memory of recorded CUDA graphs."""
    torch._dynamo.reset()  # noqa: SLF001
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
