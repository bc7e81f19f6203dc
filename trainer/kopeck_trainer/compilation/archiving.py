"""Archiving beside running ranks, as soon as all of them are warm."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from kopeck_trainer.compilation.archive import CacheArchive
from kopeck_trainer.run_directory import warm_file

LOOK_SECONDS = 1.0
GIVING_UP_SECONDS = 1.0
"""For what was written in vain to be removed."""


@contextmanager
def archiving(
    archive: CacheArchive, run_directory: Path, ranks: int, patience_seconds: Callable[[], float]
) -> Iterator[None]:
    """Ranks run inside. Once they have ended the archive has `patience_seconds` at most."""
    warm_files = [warm_file(run_directory, local_rank) for local_rank in range(ranks)]
    ended = threading.Event()
    thread = threading.Thread(target=_archive_once, args=(archive, warm_files, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(patience_seconds())
        if thread.is_alive():
            archive.give_up()
            thread.join(GIVING_UP_SECONDS)


def _archive_once(
    archive: CacheArchive, warm_files: Sequence[Path], ended: threading.Event
) -> None:
    """Also of ranks that ended before a look saw them warm."""
    is_last = False
    while not is_last:
        is_last = ended.wait(LOOK_SECONDS)
        if all(file.exists() for file in warm_files):
            archive.pack()
            return
