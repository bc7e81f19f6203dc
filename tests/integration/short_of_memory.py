"""The byte_llama, whose loss dies as for lack of memory from a micro-batch on."""

import os
import signal
from dataclasses import replace
from typing import Any

import byte_llama
from torch import Tensor

from kopeck_trainer import TrainConfig, TrainingTask


def build(config: TrainConfig) -> TrainingTask:
    """By the parameters `diesFrom`, a micro-batch, and `by`, MemoryError or SIGKILL of one rank."""
    is_last_rank = int(os.environ["RANK"]) == int(os.environ["WORLD_SIZE"]) - 1

    def loss(output: Tensor, batch: Any) -> tuple[Tensor, int]:
        if len(output) >= config.parameters["diesFrom"]:
            if config.parameters["by"] == "MemoryError":
                bytearray(2**62)
            elif is_last_rank:
                os.kill(os.getpid(), signal.SIGKILL)
        return byte_llama.next_byte_loss(output, batch)

    return replace(byte_llama.build(config), loss=loss)
