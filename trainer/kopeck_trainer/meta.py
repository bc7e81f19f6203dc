"""Building a model whose parameters take no memory yet."""

from collections.abc import Callable
from typing import Any, cast

from torch import nn
from torch.nn.modules.module import register_module_parameter_registration_hook


def with_parameters_on_meta(build: Callable[[], nn.Module]) -> nn.Module:
    """The model of `build`, its parameters on meta and its buffers real.

    `torch.device("meta")` would take the buffers too, and what they were computed from, such as
    the tables of rotary embeddings, is lost. One parameter at a time exists for a moment; its
    memory is not touched.
    """
    hook = register_module_parameter_registration_hook(cast("Any", _on_meta))  # typed too narrowly
    try:
        return build()
    finally:
        hook.remove()


def _on_meta(_module: nn.Module, _name: str, parameter: nn.Parameter | None) -> nn.Parameter | None:
    """None keeps the parameter that is registered: a tied one stays the same object."""
    if parameter is None or parameter.is_meta:
        return None
    return nn.Parameter(parameter.to("meta"), requires_grad=parameter.requires_grad)
