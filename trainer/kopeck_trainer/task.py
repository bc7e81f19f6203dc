"""What the user's builder returns."""

from __future__ import annotations  # torch is imported for the type checker only

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from torch import Generator, Tensor, nn
    from torch.optim import Optimizer


class MapDataset(Protocol):
    """Samples by number, as `torch.utils.data.Dataset` has them."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Any: ...


@dataclass(frozen=True, kw_only=True)
class TrainingTask:
    """A model and how to train it; the settings of the TrainingJob say the rest."""

    model: Callable[[], nn.Module]
    """Builds the model; its parameters are left on meta and filled in by `init`. It is called with
    the batch, or with its first item where the batch is a tuple or a list."""

    loss: Callable[[Any, Any], tuple[Tensor, Tensor | int]]
    """Of (output, batch): the sum of the losses, with gradient, and how many were summed. Divided
    once by the count of the whole global batch, so that the world size changes nothing."""

    dataset: MapDataset

    optimizer: Callable[[Iterable[tuple[str, nn.Parameter]]], Optimizer]
    """Of the model's named parameters, which are sharded. Those that it leaves out are frozen."""

    blocks: Callable[[nn.Module], Sequence[nn.Module]] | None = None
    """The modules that are compiled and sharded one by one. Default: the children of the largest
    `nn.ModuleList` of one class, or the whole model where there is none."""

    init: Callable[[str, Tensor, Generator], None] | None = None
    """Fills one full parameter, of (name, parameter, generator), with numbers of that generator.
    Default: `reset_parameters()` of the module that owns it."""

    collate: Callable[[list[Any]], Any] | None = None
    """Makes a batch of samples. Default: `torch.utils.data.default_collate`."""

    tokens: Callable[[Any], int] | None = None
    """Of a batch on the device: the tokens in it, by shapes alone, since values would have to be
    waited for. Default: tokens are not counted."""

    pad: Callable[[Any, int], Any] | None = None
    """Makes one sample so long, for `data.padTo`; longer ones are cut, which happens only while
    compiling. Default: along the first dimension of its tensors, the first padded with 0, others of
    whole numbers with -100, which cross-entropy ignores."""
