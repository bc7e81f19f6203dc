"""`python -m tests.gpu.windowed_rank FOLDER`: a rank that trains until SIGTERM.

While the file FOLDER/told exists it reports its steps; rank 0 has a window whenever FOLDER/window
does, and deletes it. FOLDER/RANK.json gets the ends of all steps on the machine's monotonic clock,
and when each window began and what it cost by the trainer's own measure.
"""

import json
import os
import sys
from pathlib import Path
from time import monotonic
from typing import Any

from kopeck_trainer.config import read_config
from kopeck_trainer.environment import rank_environment
from kopeck_trainer.train import train
from kopeck_trainer.windows import set_up
from kopeck_trainer.windows.wish import WindowWish
from tests.gpu.timekeeper import Timekeeper


class AskedWish(WindowWish):
    """For a window when somebody asks for it, also of one rank alone, which has none otherwise."""

    folder: Path
    windows: list[dict[str, float]]

    def __init__(self, every_seconds: float | None, **how: Any) -> None:
        super().__init__(every_seconds, **how)
        self._is_deaf = os.environ["RANK"] != "0"

    @property
    def is_set(self) -> bool:
        return not self._is_deaf and (self.folder / "window").exists()

    def begun(self) -> None:
        super().begun()
        if not self._is_deaf:
            (self.folder / "window").unlink()
            self.windows.append({"began": monotonic()})

    def cost(self, seconds: float) -> float | None:
        if not self._is_deaf:
            self.windows[-1] |= {"ended": monotonic(), "cost_seconds": seconds}
        return super().cost(seconds)


def main() -> int:
    folder = Path(sys.argv[1])
    AskedWish.folder, AskedWish.windows = folder, []
    set_up.WindowWish = AskedWish  # type: ignore[misc]
    environment = rank_environment(os.environ)
    config = read_config(environment.config_path)
    assert config.training is not None
    timekeeper = Timekeeper(folder / "told")
    timekeeper.start()
    train(config, config.training, environment, timekeeper)
    told = {"ends": timekeeper.ends, "windows": AskedWish.windows}
    (folder / f"{environment.rank}.json").write_text(json.dumps(told))
    return 0


if __name__ == "__main__":
    sys.exit(main())
