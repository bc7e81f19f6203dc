"""`python -m tests.gpu.timed_rank RESULT TOLD`: one rank that trains until SIGTERM.

It reports its steps while the file TOLD exists. RESULT gets, as JSON, the end of each step on the
machine's monotonic clock.
"""

import json
import os
import sys
from pathlib import Path
from time import monotonic
from typing import Any

from kopeck_trainer.config import read_config
from kopeck_trainer.environment import rank_environment
from kopeck_trainer.reporter import Reporter
from kopeck_trainer.train import train


class Timekeeper(Reporter):
    """Keeps when each step ended, and is silent unless it is asked."""

    def __init__(self, told: Path) -> None:
        super().__init__(os.environ)
        self._told = told
        self.ends: list[float] = []

    def send(self) -> None:
        if self._told.exists():
            super().send()

    def step_ended(self, **figures: Any) -> None:
        super().step_ended(**figures)
        self.ends.append(monotonic())


def main() -> int:
    environment = rank_environment(os.environ)
    config = read_config(environment.config_path)
    assert config.training is not None
    timekeeper = Timekeeper(Path(sys.argv[2]))
    timekeeper.start()
    train(config, config.training, environment, timekeeper)
    Path(sys.argv[1]).write_text(json.dumps(timekeeper.ends))
    return 0


if __name__ == "__main__":
    sys.exit(main())
