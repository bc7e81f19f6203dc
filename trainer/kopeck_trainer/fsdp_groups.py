"""What FSDP gathers and reduces together."""

from typing import cast

from torch import nn
from torch.distributed.fsdp import FSDPModule


def groups(model: FSDPModule) -> list[tuple[FSDPModule, list[nn.Parameter]]]:
    """The modules that FSDP gathers each by itself, in the order of `model`, and their masters."""
    found: dict[FSDPModule, list[nn.Parameter]] = {}
    seen = set[nn.Parameter]()

    def visit(module: nn.Module, owner: FSDPModule) -> None:
        if isinstance(module, FSDPModule):
            owner = module
            found.setdefault(owner, [])  # two parents may hold it
        for parameter in module.parameters(recurse=False):
            if parameter not in seen:
                seen.add(parameter)
                found[owner].append(parameter)
        for child in module.children():
            visit(child, owner)

    visit(cast("nn.Module", model), model)
    return list(found.items())
