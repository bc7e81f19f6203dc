"""Calls of compiled blocks and losses that ran eagerly, and what no compiled call has of them.

Under `eager_on_recompile` torch calls back nowhere and counts nothing. So the forward of each
class of them notes the call itself: in Python while it runs eagerly; while it is traced it says
once what it is traced for, and nothing of it is left in the graph.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Call:
    """What distinguishes calls of a compiled module."""

    shapes: tuple[Shape, ...]
    """Of its tensors, those inside of a batch too, in order."""
    with_gradient: bool
    training: bool


@dataclass
class Fallbacks:
    """Counts from the moment that `is_counting`: before that eager calls are intended."""

    say: Callable[[str], None]
    is_counting: bool = False
    count: int = 0
    compiled: dict[type, set[Call]] = field(default_factory=dict)
    said: set[str] = field(default_factory=set)

    def watch(self, modules: Sequence[nn.Module], name: str) -> None:
        """`name` is what the log calls each of them."""
        for kind in {type(module) for module in modules}:
            self._watch_class(kind, name)

    def _watch_class(self, kind: Any, name: str) -> None:
        forward = kind.forward
        compiled = self.compiled.setdefault(kind, set())

        @torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
        def trace(shapes: tuple[Shape, ...], with_gradient: bool, training: bool) -> None:  # noqa: FBT001  it is called by the tracer, by position
            compiled.add(Call(shapes, with_gradient, training))

        def noted(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            leaves = tree_leaves((args, kwargs))
            shapes = tuple(tuple(each.shape) for each in leaves if isinstance(each, Tensor))
            if torch.compiler.is_compiling():
                trace(shapes, torch.is_grad_enabled(), module.training)
            elif self.is_counting:
                self._note(name, Call(shapes, torch.is_grad_enabled(), module.training), compiled)
            return forward(module, *args, **kwargs)

        kind.forward = noted

    def _note(self, name: str, call: Call, compiled: set[Call]) -> None:
        self.count += 1
        differs = difference(call, compiled)
        sentence = f"{name} runs eagerly, it was not compiled for this: {differs}"
        if sentence not in self.said:
            self.said.add(sentence)
            self.say(sentence)


def difference(call: Call, compiled: set[Call]) -> str:
    """What of `call` no compiled one has, or that only their combination is new."""
    shapes = {each.shapes for each in compiled}
    if call.shapes not in shapes:
        return f"shape {_shapes(call.shapes)}, compiled for {' or '.join(map(_shapes, shapes))}"
    alike = [each for each in compiled if each.shapes == call.shapes]
    if call.with_gradient not in {each.with_gradient for each in alike}:
        return f"gradients {'on' if call.with_gradient else 'off'}"
    if call.training not in {each.training for each in alike}:
        return f"training {'on' if call.training else 'off'}"
    return f"something else than shape, gradients and training, at shape {_shapes(call.shapes)}"


def _shapes(shapes: tuple[Shape, ...]) -> str:
    return ", ".join("×".join(map(str, shape)) or "scalar" for shape in shapes)
