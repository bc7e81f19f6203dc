"""The directory of torch's compiler, kept for the next attempt as one file.

Torch's own `save_cache_artifacts` leaves out the libraries that the CPU's compiler has built; the
directory has everything, holds at every world size, and may be unpacked anywhere.
"""

import hashlib
import json
import os
import shutil
import stat
import tarfile
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from threading import Event

from kopeck_trainer.config import TrainConfig

FASTEST = 1
"""Of gzip's levels: the job waits for it at its end."""


@dataclass(kw_only=True)
class CacheArchive:
    """`directory` is node-local, `file` in the folder that attempts share."""

    file: Path
    directory: Path
    say: Callable[[str], None]
    unpacked: frozenset[str] = field(default=frozenset(), init=False)
    given_up: Event = field(default_factory=Event, init=False)

    def unpack(self) -> None:
        """Fill the directory. What cannot be read or trusted is said and compiled anew."""
        try:
            _refuse_untrusted(self.file)
            self._extract()
        except FileNotFoundError:
            return
        except (OSError, tarfile.TarError, EOFError) as error:
            self.say(f"the compile cache {self.file} is not used ({error})")
            return
        self.unpacked = self._content()
        self.say(f"compile cache unpacked, {len(self.unpacked)} files")

    def _extract(self) -> None:
        """Aside first: half a library must not be found."""
        with tempfile.TemporaryDirectory(prefix="kopeck-cache-") as aside:
            with tarfile.open(self.file) as archive:
                archive.extractall(aside, filter="data")
            shutil.copytree(aside, self.directory, dirs_exist_ok=True)

    def pack(self) -> None:
        """Replace the file as a whole, if there is anything that it has not."""
        if self._content() <= self.unpacked:
            return
        temporary = self.file.with_suffix(f".{os.getpid()}.tmp")
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with tarfile.open(temporary, "w:gz", compresslevel=FASTEST) as archive:
                archive.add(self.directory, arcname=".", filter=self._kept)
            os.replace(temporary, self.file)  # noqa: PTH105  Path.replace hides that it is atomic
        except OSError as error:
            with suppress(OSError):
                temporary.unlink()
            self.say(f"the compile cache {self.file} cannot be written ({error})")
            return
        self.unpacked = self._content()
        self.say(f"compile cache archived, {self.file.stat().st_size / 1e6:.1f} MB")

    def give_up(self) -> None:
        """Ends a `pack` in another thread before its next file."""
        self.given_up.set()

    def _kept(self, member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        """Locks and files that a compiler writes at this moment are nobody else's."""
        if self.given_up.is_set():
            raise TimeoutError("it took too long")
        parts = Path(member.name).parts
        return None if "locks" in parts or member.name.endswith(".tmp") else member

    def _content(self) -> frozenset[str]:
        files = (path for path in self.directory.rglob("*") if path.is_file())
        return frozenset(str(path.relative_to(self.directory)) for path in files)


def archive_file(folder: Path, config: TrainConfig) -> Path:
    """Of what is compiled alike: the same model and shapes, at any world size and in any mode."""
    training = config.training
    alike = {
        "torch": metadata.version("torch"),
        "entrypoint": config.entrypoint,
        "parameters": config.parameters,
        "micro_batch": training and training.micro_batch_size,
        "precision": training and training.precision,
        "activations": asdict(training.activations) if training else None,
        "data": asdict(training.data) if training else None,
    }
    text = json.dumps(alike, sort_keys=True)
    return folder / f"inductor-{hashlib.sha256(text.encode()).hexdigest()[:16]}.tar.gz"


def _refuse_untrusted(file: Path) -> None:
    """What is in it is executed. Raises PermissionError where others could have written it."""
    status = file.stat()
    if status.st_uid not in (0, os.geteuid()) or status.st_mode & stat.S_IWOTH:
        raise PermissionError(f"it is owned by user {status.st_uid}, or others may write it")
