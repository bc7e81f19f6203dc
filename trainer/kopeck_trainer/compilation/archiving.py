"""Archiving beside running ranks, as soon as all of them are warm."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from kopeck_trainer.compilation.archive import CacheArchive
from kopeck_trainer.run_directory import warm_file

LOOK_SECONDS = 1.0


@contextmanager
def archiving(archive: CacheArchive | None, run_directory: Path, ranks: int) -> Iterator[None]:
    """Ranks run inside. A worker that keeps no archive has None."""
    if archive is None:
        yield
        return
    warm_files = [warm_file(run_directory, local_rank) for local_rank in range(ranks)]
    ended = threading.Event()
    thread = threading.Thread(target=_archive_once, args=(archive, warm_files, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


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
