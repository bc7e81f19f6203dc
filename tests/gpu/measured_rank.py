"""`python -m tests.gpu.measured_rank RESULTS`: one rank of a training, and what it took.

RESULTS is a folder, where each rank leaves `<rank>.json`.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from kopeck_trainer.config import read_config
from kopeck_trainer.environment import rank_environment
from kopeck_trainer.reporter import Reporter
from kopeck_trainer.train import train
from tests.gpu.kernels import kernels, summary

PROFILED_STEPS = 3
"""At the end, beside one more for the profiler to start in."""


class Recorder(Reporter):
    """Keeps the time and the loss of each step, and profiles the last ones."""

    def __init__(self, last_step: int) -> None:
        super().__init__(os.environ)
        self._first_profiled = last_step - PROFILED_STEPS
        self.profile = profile(activities=[ProfilerActivity.CUDA])
        self.seconds: list[float] = []
        self.losses: list[float | None] = []
        self.compile_mode: str | None = None

    def update(self, **figures: Any) -> None:
        super().update(**figures)
        self.compile_mode = figures.get("compile_mode", self.compile_mode)

    def step_ended(self, *, step: int, seconds: float, loss: float | None, **figures: Any) -> None:
        super().step_ended(step=step, seconds=seconds, loss=loss, **figures)
        self.seconds.append(seconds)
        self.losses.append(loss)
        if step == self._first_profiled:
            self.profile.start()
        if step == self._first_profiled + PROFILED_STEPS:
            self.profile.stop()


def main() -> int:
    environment = rank_environment(os.environ)
    config = read_config(environment.config_path)
    assert config.training is not None
    assert config.training.steps is not None
    recorder = Recorder(config.training.steps)
    train(config, config.training, environment, recorder)
    _write(Path(sys.argv[1], f"{environment.rank}.json"), recorder)
    return 0


def _write(result: Path, recorder: Recorder) -> None:
    trace = result.with_suffix(".trace.json")
    recorder.profile.export_chrome_trace(str(trace))
    measured = {
        "step_seconds": recorder.seconds,
        "losses": recorder.losses,
        "peak_reserved_bytes": torch.cuda.max_memory_reserved(),
        "compile_mode": recorder.compile_mode,
        "compile_seconds": recorder.clock.seconds()["compile"],
        "profile": summary(kernels(trace)),
    }
    result.write_text(json.dumps(measured))


if __name__ == "__main__":
    sys.exit(main())
