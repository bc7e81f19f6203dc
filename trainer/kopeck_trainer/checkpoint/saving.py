"""Writing a checkpoint, by all ranks together."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import distributed as dist
from torch.distributed import ProcessGroup
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.filesystem import FileSystemWriter
from torch.distributed.checkpoint.state_dict_saver import save

from kopeck_trainer.agreement import gathered, on_rank_zero
from kopeck_trainer.checkpoint.durable import sync_directory
from kopeck_trainer.checkpoint.fence import inside_fence
from kopeck_trainer.checkpoint.folder import CheckpointName, remove_old, unfinished
from kopeck_trainer.checkpoint.manifest import (
    FileRecord,
    Manifest,
    Position,
    record_files,
    write_manifest,
)
from kopeck_trainer.errors import CheckpointError, PeerLostError
from kopeck_trainer.peers import is_peer_lost


@dataclass(frozen=True, kw_only=True)
class Saver:
    """Writes the checkpoints of one attempt into the job's folder and keeps the newest `keep`."""

    folder: Path
    attempt: int
    keep: int
    group: ProcessGroup | None = None
    """Of all ranks; None is the default group."""

    def save(self, content: dict[str, Any], position: Position) -> None:
        """Returns on every rank once the checkpoint is complete on disk.

        `content` is what `TrainedState.read` returns, or a copy.

        Raises on every rank: AttemptReplacedError if a newer attempt has started, CheckpointError
        where it cannot be written, PeerLostError.
        """
        name = CheckpointName(position.step, self.attempt)
        temporary = unfinished(self.folder, name)
        try:
            self._write_shards(content, temporary)
            manifest = Manifest(position=position, files=self._files_of_all_ranks(temporary))
            on_rank_zero(lambda: self._commit(name, temporary, manifest), self.group)
        except OSError as error:
            raise CheckpointError(f"{temporary} cannot be written: {error}") from None

    def _commit(self, name: CheckpointName, temporary: Path, manifest: Manifest) -> None:
        write_manifest(temporary, manifest)
        sync_directory(temporary)
        with inside_fence(self.folder, self.attempt):
            temporary.rename(self.folder / str(name))
        sync_directory(self.folder)
        remove_old(self.folder, self.keep)

    def _write_shards(self, content: dict[str, Any], temporary: Path) -> None:
        """Raises OSError or PeerLostError for torch's CheckpointException, a BaseException."""
        self._clear(temporary)
        try:
            save(content, storage_writer=FileSystemWriter(temporary), process_group=self.group)
        except CheckpointException as failure:
            if is_peer_lost(failure):
                raise PeerLostError("a peer was lost while a checkpoint was written") from None
            self._clear(temporary)  # a full disk needs it
            raise OSError(str(next(iter(failure.failures.values()))[0])) from None

    def _files_of_all_ranks(self, temporary: Path) -> dict[str, FileRecord]:
        """Each rank records what it wrote: it sees its own files, and has them in memory."""
        rank = dist.get_rank()
        names = [path.name for path in temporary.glob(f"__{rank}_*")]
        if rank == 0:
            names.append(".metadata")
        merged: dict[str, FileRecord] = {}
        for records in gathered(record_files(temporary, names), self.group):
            merged |= records
        return merged

    def _clear(self, temporary: Path) -> None:
        on_rank_zero(lambda: shutil.rmtree(temporary, ignore_errors=True), self.group)
