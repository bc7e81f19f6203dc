"""The toy, whose first checkpoint is held up just before it is complete."""

import time
from pathlib import Path
from typing import Any

import toy

from kopeck_trainer import TrainConfig, TrainingTask
from kopeck_trainer.checkpoint import saving


def build(config: TrainConfig) -> TrainingTask:
    """From the file `held` in the folder `parameters.gate` on, until there is one `released`."""
    gate = Path(config.parameters["gate"])
    write_manifest = saving.write_manifest

    def write(*arguments: Any) -> None:
        (gate / "held").touch()
        while not (gate / "released").exists():
            time.sleep(0.02)
        write_manifest(*arguments)

    saving.write_manifest = write
    return toy.build(config)
