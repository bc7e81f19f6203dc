"""Finding the newest good checkpoint and loading it, by all ranks together."""

import logging
from pathlib import Path

from torch import distributed as dist
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.filesystem import FileSystemReader
from torch.distributed.checkpoint.state_dict_loader import load

from kopeck_trainer.agreement import gathered, on_rank_zero
from kopeck_trainer.checkpoint.fence import raise_fence
from kopeck_trainer.checkpoint.folder import (
    CheckpointName,
    complete_checkpoints,
    remove_unfinished,
    set_aside,
)
from kopeck_trainer.checkpoint.manifest import (
    Manifest,
    Position,
    damaged_files,
    read_manifest,
)
from kopeck_trainer.checkpoint.state import TrainedState
from kopeck_trainer.errors import ConfigurationError, PeerLostError
from kopeck_trainer.peers import is_peer_lost

logger = logging.getLogger(__name__)


class MisfitError(Exception):
    """An intact checkpoint holds something else than the model and its optimizer."""


def open_folder(folder: Path, attempt: int) -> None:
    """Make the job's folder and take it over from older attempts.

    Raises on every rank: AttemptReplacedError if a newer one has started, ConfigurationError
    where the folder cannot be used.
    """
    try:
        on_rank_zero(lambda: _take_over(folder, attempt))
    except OSError as error:
        raise ConfigurationError(
            "spec.training.checkpoint.path",
            f"{error.filename or folder} cannot be used ({error.strerror})",
            "name a folder that is mounted and that the training may write",
        ) from None


def load_newest(folder: Path, state: TrainedState) -> Position | None:
    """Load the newest good checkpoint into `state`; None where there is none.

    A damaged one is skipped with a warning, and everything comes from the one before. Raises
    ConfigurationError if intact ones are there and none fits the model: starting anew would throw
    the work away.
    """
    skipped: list[CheckpointName] = []
    misfit: str | None = None
    for name in on_rank_zero(lambda: complete_checkpoints(folder)):
        manifest = _intact_manifest(folder / str(name))
        try:
            if manifest is not None:
                _load(folder / str(name), state)
                _set_aside(folder, skipped)
                return manifest.position
        except MisfitError as error:
            misfit = misfit or f"{name} does not fit the model ({error})"
        skipped.append(name)
        _warn(f"checkpoint {folder / str(name)} is skipped: {misfit or 'it is damaged'}")
    if misfit:
        raise ConfigurationError(
            "spec.training.checkpoint.path",
            misfit,
            "restore the model and optimizer that wrote it, or name another path",
        )
    _set_aside(folder, skipped)
    return None


def _take_over(folder: Path, attempt: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    raise_fence(folder, attempt)
    remove_unfinished(folder)


def _set_aside(folder: Path, names: list[CheckpointName]) -> None:
    def rename() -> None:
        for name in names:
            set_aside(folder, name)

    on_rank_zero(rename)


def _intact_manifest(checkpoint: Path) -> Manifest | None:
    """None if anything is damaged. Each rank compares its share of the files."""
    manifest = on_rank_zero(lambda: read_manifest(checkpoint))
    if manifest is None:
        return None
    own = list(manifest.files.items())[dist.get_rank() :: dist.get_world_size()]
    return None if any(gathered(damaged_files(checkpoint, dict(own)))) else manifest


def _load(checkpoint: Path, state: TrainedState) -> None:
    """Raises MisfitError or PeerLostError for torch's CheckpointException, a BaseException."""
    loaded = state.read()
    try:
        load(loaded, storage_reader=FileSystemReader(checkpoint))
    except CheckpointException as failure:
        if is_peer_lost(failure):
            raise PeerLostError("a peer was lost while a checkpoint was loaded") from None
        raise MisfitError(str(next(iter(failure.failures.values()))[0])) from None
    state.write(loaded)


def _warn(sentence: str) -> None:
    if dist.get_rank() == 0:
        logger.warning(sentence)
