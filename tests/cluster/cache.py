"""Things that are slow to make and the same in every run, kept in the user's cache folder."""

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def cache_folder() -> Path:
    """The project's part of the user's cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kopeck"


def key_of(*parts: bytes | str) -> str:
    """A short name for what is made from `parts`, and from nothing else."""
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        digest.update(b"%d:" % len(content) + content)
    return digest.hexdigest()[:16]


def cached(entry: str, make: Callable[[Path], None]) -> Path:
    """The file or folder `entry` of the cache; `make` writes it, once, to the path it is given.

    It appears whole or not at all, also when two runs want it at once or one of them dies.
    """
    path = cache_folder() / entry
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with _locked(path.with_name(f".{path.name}.lock")):
        if not path.exists():
            unfinished = path.with_name(f".{path.name}.unfinished")
            _remove(unfinished)
            make(unfinished)
            unfinished.rename(path)
    return path


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
