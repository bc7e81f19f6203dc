"""Samples of few lengths, so that few shapes are compiled."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.nn.functional import pad
from torch.utils._pytree import tree_leaves, tree_map_only

from kopeck_trainer.errors import ConfigurationError

IGNORED_TARGET = -100
"""The `ignore_index` of torch's cross-entropy."""


@dataclass(frozen=True, kw_only=True)
class Padding:
    """The length of a sample is the first dimension of its first tensor."""

    lengths: Sequence[int]
    """Ascending."""
    resize: Callable[[Any, int], Any]
    """Pads or cuts one sample."""

    def pad(self, samples: Sequence[Any]) -> list[Any]:
        """All of them of the smallest length that holds the longest.

        Raises ConfigurationError where none does.
        """
        longest = max(length_of(sample) for sample in samples)
        length = next((each for each in self.lengths if each >= longest), None)
        if length is None:
            raise ConfigurationError(
                "spec.training.data.padTo",
                f"a sample of length {longest} is longer than all of {list(self.lengths)}",
                f"add {longest}, or cut the samples",
            )
        return self.resized(samples, length)

    def resized(self, samples: Sequence[Any], length: int) -> list[Any]:
        return [self.resize(sample, length) for sample in samples]


def length_of(sample: Any) -> int:
    """Raises ConfigurationError for a sample without a dimension."""
    for leaf in tree_leaves(sample):
        if isinstance(leaf, Tensor) and leaf.dim() > 0:
            return leaf.shape[0]
    raise ConfigurationError(
        "spec.training.data.padTo", "the samples have no length", "remove it, or give them tensors"
    )


def resized(sample: Any, length: int) -> Any:
    """The sample `length` long along the first dimension of its tensors.

    The first tensor is padded with 0; of the others, taken for targets, those of whole numbers
    with -100, which cross-entropy ignores.
    """
    is_first = True

    def of_length(tensor: Tensor) -> Tensor:
        nonlocal is_first
        if tensor.dim() == 0:
            return tensor
        value = 0 if is_first or tensor.is_floating_point() else IGNORED_TARGET
        is_first = False
        missing = max(0, length - tensor.shape[0])
        return pad(tensor[:length], [0, 0] * (tensor.dim() - 1) + [0, missing], value=value)

    return tree_map_only(Tensor, of_length, sample)
