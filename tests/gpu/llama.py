"""A Llama-style model of 1.5 billion parameters, as a user would write it.

Tensor names carry their shape: B batch, S sequence, D model width, F hidden width of the
feed-forward, H query heads, G key and value heads, K width of a head, V vocabulary.
"""

from functools import partial

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from kopeck_trainer import TrainConfig, TrainingTask
from kopeck_trainer.losses import next_token_loss

ATTENTION = [SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]
"""By speed on a Hopper GPU; CPUs have the last two."""

USED = 2000
"""Tokens that occur, few enough to be learned in a hundred steps."""


def build(config: TrainConfig) -> TrainingTask:
    """`spec.parameters` may have other sizes than the 1.5B model's, and `learning_rate`."""
    sizes = {
        "vocabulary": 128256,
        "dim": 2048,
        "layers": 16,
        "heads": 32,
        "groups": 8,
        "hidden": 8192,
        "sequence": 4096,
    } | config.parameters
    learning_rate = sizes.pop("learning_rate", 3e-4)
    return TrainingTask(
        model=partial(Llama, **sizes),
        loss=next_token_loss,
        dataset=Walks(sizes["sequence"]),
        optimizer=partial(torch.optim.AdamW, lr=learning_rate, weight_decay=0.1),
        init=initial,
    )


class Walks:
    """Sequences in which one of three tokens follows the last one, around a circle of USED."""

    def __init__(self, length: int) -> None:
        self._length = length

    def __len__(self) -> int:
        return 1 << 40

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        generator = Generator().manual_seed(index)
        strides = torch.randint(1, 4, (self._length + 1,), generator=generator)
        strides[0] = torch.randint(USED, (), generator=generator)
        tokens = strides.cumsum(0) % USED
        return tokens[:-1], tokens[1:]


def initial(name: str, parameter: Tensor, generator: Generator) -> None:
    if "norm" in name:
        parameter.fill_(1)
    else:
        parameter.normal_(std=0.02, generator=generator)


class Llama(nn.Module):
    def __init__(
        self,
        *,
        vocabulary: int,
        dim: int,
        layers: int,
        heads: int,
        groups: int,
        hidden: int,
        sequence: int,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, dim)
        self.layers = nn.ModuleList(
            Block(dim, heads, groups, hidden, sequence) for _ in range(layers)
        )
        self.norm = nn.RMSNorm(dim)
        self.head = nn.Linear(dim, vocabulary, bias=False)

    def forward(self, tokens_BS: Tensor) -> Tensor:  # noqa: N803
        x_BSD = self.embedding(tokens_BS)  # noqa: N806
        for layer in self.layers:
            x_BSD = layer(x_BSD)  # noqa: N806
        logits: Tensor = self.head(self.norm(x_BSD))
        return logits


class Block(nn.Module):
    def __init__(self, dim: int, heads: int, groups: int, hidden: int, sequence: int) -> None:
        super().__init__()
        self.attention_norm = nn.RMSNorm(dim)
        self.attention = Attention(dim, heads, groups, sequence)
        self.feed_forward_norm = nn.RMSNorm(dim)
        self.feed_forward = SwiGlu(dim, hidden)

    def forward(self, x_BSD: Tensor) -> Tensor:  # noqa: N803
        x_BSD = x_BSD + self.attention(self.attention_norm(x_BSD))  # noqa: N806
        result: Tensor = x_BSD + self.feed_forward(self.feed_forward_norm(x_BSD))
        return result


class Attention(nn.Module):
    cos_SK: Tensor  # noqa: N815
    sin_SK: Tensor  # noqa: N815

    def __init__(self, dim: int, heads: int, groups: int, sequence: int) -> None:
        super().__init__()
        self.width = dim // heads
        self.query = nn.Linear(dim, heads * self.width, bias=False)
        self.key = nn.Linear(dim, groups * self.width, bias=False)
        self.value = nn.Linear(dim, groups * self.width, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)
        cos_SK, sin_SK = rotary_tables(sequence, self.width)  # noqa: N806
        self.register_buffer("cos_SK", cos_SK, persistent=False)
        self.register_buffer("sin_SK", sin_SK, persistent=False)

    def forward(self, x_BSD: Tensor) -> Tensor:  # noqa: N803
        q_BHSK = self._rotated(self._heads(self.query(x_BSD)))  # noqa: N806
        k_BGSK = self._rotated(self._heads(self.key(x_BSD)))  # noqa: N806
        v_BGSK = self._heads(self.value(x_BSD))  # noqa: N806
        with sdpa_kernel(ATTENTION, set_priority=True):
            y_BHSK = functional.scaled_dot_product_attention(  # noqa: N806
                q_BHSK, k_BGSK, v_BGSK, is_causal=True, enable_gqa=True
            )
        result: Tensor = self.out(y_BHSK.transpose(1, 2).flatten(-2))
        return result

    def _heads(self, x_BSN: Tensor) -> Tensor:  # noqa: N803
        return x_BSN.unflatten(-1, (-1, self.width)).transpose(1, 2)

    def _rotated(self, x_BHSK: Tensor) -> Tensor:  # noqa: N803
        """Rotary position embedding (Su et al., 2021), in fp32."""
        left, right = x_BHSK.float().chunk(2, dim=-1)
        turned_BHSK = torch.cat((-right, left), dim=-1)  # noqa: N806
        rotated: Tensor = x_BHSK * self.cos_SK + turned_BHSK * self.sin_SK
        return rotated.to(x_BHSK.dtype)


class SwiGlu(nn.Module):
    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.gate = nn.Linear(dim, hidden, bias=False)
        self.up = nn.Linear(dim, hidden, bias=False)
        self.down = nn.Linear(hidden, dim, bias=False)

    def forward(self, x_BSD: Tensor) -> Tensor:  # noqa: N803
        result: Tensor = self.down(functional.silu(self.gate(x_BSD)) * self.up(x_BSD))
        return result


def rotary_tables(length: int, width: int) -> tuple[Tensor, Tensor]:
    """Cosine and sine by position and dimension, each of shape (length, width), base 500,000."""
    frequencies = 500_000.0 ** (-torch.arange(0, width, 2) / width)
    angles = torch.outer(torch.arange(length), frequencies).repeat(1, 2)
    return angles.cos(), angles.sin()
