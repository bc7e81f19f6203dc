"""A small Llama-style language model over bytes, trained on the source of Python's library.

Tensor names carry their shape: B batch, S sequence, D model width, H heads, K width of a head.
"""

import sysconfig
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from kopeck_trainer import TrainConfig, TrainingTask

VOCABULARY = 256
MAX_TEXT_BYTES = 4_000_000


def build(config: TrainConfig) -> TrainingTask:
    """`spec.parameters`: dim, layers, heads, sequenceLength, learningRate."""
    parameters = config.parameters
    sequence_length = parameters.get("sequenceLength", 128)
    return TrainingTask(
        model=partial(
            ByteLlama,
            dim=parameters.get("dim", 128),
            layers=parameters.get("layers", 4),
            heads=parameters.get("heads", 4),
            sequence_length=sequence_length,
        ),
        loss=next_byte_loss,
        dataset=Windows(library_source(), sequence_length),
        optimizer=partial(torch.optim.AdamW, lr=parameters.get("learningRate", 3e-3)),
        tokens=lambda batch: batch[0].numel(),
    )


def library_source() -> bytes:
    """The modules of the standard library in alphabetical order, up to 4 MB."""
    text = bytearray()
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        if len(text) >= MAX_TEXT_BYTES:
            break
        text += path.read_bytes()
    return bytes(text[:MAX_TEXT_BYTES])


class Windows:
    """Text cut into sequences: each sample is (bytes, the bytes that follow them)."""

    def __init__(self, text: bytes, length: int) -> None:
        self._text = torch.frombuffer(bytearray(text), dtype=torch.uint8)
        self._length = length

    def __len__(self) -> int:
        return (len(self._text) - 1) // self._length

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        start = index * self._length
        window = self._text[start : start + self._length + 1].long()
        return window[:-1], window[1:]


def next_byte_loss(logits_BSV: Tensor, batch: Any) -> tuple[Tensor, int]:  # noqa: N803
    """The summed cross-entropy in nats, and the number of bytes."""
    _, targets_BS = batch  # noqa: N806
    loss = functional.cross_entropy(
        logits_BSV.flatten(0, 1).float(), targets_BS.flatten(), reduction="sum"
    )
    return loss, targets_BS.numel()


class ByteLlama(nn.Module):
    def __init__(self, *, dim: int, layers: int, heads: int, sequence_length: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, dim)
        self.layers = nn.ModuleList(Block(dim, heads, sequence_length) for _ in range(layers))
        self.norm = nn.RMSNorm(dim)
        self.head = nn.Linear(dim, VOCABULARY, bias=False)

    def forward(self, bytes_BS: Tensor) -> Tensor:  # noqa: N803
        x_BSD = self.embedding(bytes_BS)  # noqa: N806
        for layer in self.layers:
            x_BSD = layer(x_BSD)  # noqa: N806
        logits: Tensor = self.head(self.norm(x_BSD))
        return logits


class Block(nn.Module):
    def __init__(self, dim: int, heads: int, sequence_length: int) -> None:
        super().__init__()
        self.attention_norm = nn.RMSNorm(dim)
        self.attention = Attention(dim, heads, sequence_length)
        self.feed_forward_norm = nn.RMSNorm(dim)
        self.feed_forward = SwiGlu(dim, hidden=dim * 8 // 3 // 32 * 32)

    def forward(self, x_BSD: Tensor) -> Tensor:  # noqa: N803
        x_BSD = x_BSD + self.attention(self.attention_norm(x_BSD))  # noqa: N806
        result: Tensor = x_BSD + self.feed_forward(self.feed_forward_norm(x_BSD))
        return result


class Attention(nn.Module):
    cos_SK: Tensor  # noqa: N815
    sin_SK: Tensor  # noqa: N815

    def __init__(self, dim: int, heads: int, sequence_length: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)
        cos_SK, sin_SK = rotary_tables(sequence_length, dim // heads)  # noqa: N806
        self.register_buffer("cos_SK", cos_SK, persistent=False)
        self.register_buffer("sin_SK", sin_SK, persistent=False)

    def forward(self, x_BSD: Tensor) -> Tensor:  # noqa: N803
        qkv_B3HSK = self.qkv(x_BSD).unflatten(-1, (3, self.heads, -1)).permute(0, 2, 3, 1, 4)  # noqa: N806
        q_BHSK, k_BHSK, v_BHSK = qkv_B3HSK.unbind(1)  # noqa: N806
        y_BHSK = functional.scaled_dot_product_attention(  # noqa: N806
            self._rotated(q_BHSK), self._rotated(k_BHSK), v_BHSK, is_causal=True
        )
        result: Tensor = self.out(y_BHSK.transpose(1, 2).flatten(-2))
        return result

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


def rotary_tables(length: int, head_width: int) -> tuple[Tensor, Tensor]:
    """Cosine and sine by position and dimension, each of shape (length, head_width)."""
    frequencies = 10_000.0 ** (-torch.arange(0, head_width, 2) / head_width)
    angles = torch.outer(torch.arange(length), frequencies).repeat(1, 2)
    return angles.cos(), angles.sin()
