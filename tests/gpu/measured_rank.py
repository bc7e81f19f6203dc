"""`python -m tests.gpu.measured_rank RESULT`: one rank of a training, and what it took."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import torch

from kopeck_trainer.config import read_config
from kopeck_trainer.environment import rank_environment
from kopeck_trainer.reporter import Reporter
from kopeck_trainer.train import train


class Recorder(Reporter):
    """Keeps the time of each step."""

    def __init__(self) -> None:
        super().__init__(os.environ)
        self.seconds: list[float] = []

    def step_ended(self, *, seconds: float, **figures: Any) -> None:
        super().step_ended(seconds=seconds, **figures)
        self.seconds.append(seconds)


def main() -> int:
    environment = rank_environment(os.environ)
    config = read_config(environment.config_path)
    assert config.training is not None
    recorder = Recorder()
    train(config, config.training, environment, recorder)
    if environment.rank == 0:
        measured = {
            "step_seconds": recorder.seconds,
            "peak_reserved_bytes": torch.cuda.max_memory_reserved(),
        }
        Path(sys.argv[1]).write_text(json.dumps(measured))
    return 0


if __name__ == "__main__":
    sys.exit(main())
