"""The names in a job's folder of checkpoints."""

import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kopeck_trainer.checkpoint.manifest import MANIFEST

_COMPLETE = re.compile(r"step-(\d+)\.a(\d+)")


@dataclass(frozen=True, order=True)
class CheckpointName:
    """Sorts from the oldest to the newest."""

    step: int
    attempt: int

    def __str__(self) -> str:
        return f"step-{self.step}.a{self.attempt}"


def complete_checkpoints(folder: Path) -> list[CheckpointName]:
    """The checkpoints that were committed, newest first."""
    found = []
    for path in folder.iterdir():
        match = _COMPLETE.fullmatch(path.name)
        if match and (path / MANIFEST).is_file():
            found.append(CheckpointName(int(match[1]), int(match[2])))
    return sorted(found, reverse=True)


def unfinished(folder: Path, name: CheckpointName) -> Path:
    return folder / f"{name}.tmp"


def set_aside(folder: Path, name: CheckpointName) -> None:
    """Take a damaged checkpoint out of sight, until the next one is complete."""
    bad = folder / f"{name}.bad"
    shutil.rmtree(bad, ignore_errors=True)
    (folder / str(name)).rename(bad)


def remove_unfinished(folder: Path) -> None:
    _remove(folder.glob("step-*.tmp"))


def remove_old(folder: Path, keep: int) -> None:
    """All but the newest `keep`, and those set aside. To be called once a new one is complete."""
    _remove([folder / str(name) for name in complete_checkpoints(folder)[keep:]])
    _remove(folder.glob("step-*.bad"))


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        shutil.rmtree(path, ignore_errors=True)  # what stays is tried again after the next one
