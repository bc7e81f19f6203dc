"""The files that hold traces, and their bytes, block by block."""

import lzma
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from kopeck.api.errors import ConfigError

_BLOCK_BYTES = 512 * 1024
"""Small enough that what is decoded of it stays in the processor's cache."""
_UNPACKED_AT_ONCE_BYTES = 64 * 1024
"""What is lost before the damage of an archive is less."""
_GZIP = b"\x1f\x8b"
_WITH_HEADER = 31
"""What zlib calls gzip."""
_ARCHIVES = (".tar.gz", ".tgz", ".tar")
_TRACES = (".json", ".json.gz")
_KINDS = ".json, .json.gz, .tar.gz or a folder of them"


@dataclass(frozen=True)
class TraceFile:
    """One rank's trace."""

    path: Path
    name: str
    """What a reader knows it by: its path, or its place in an archive."""
    is_last_before_damage: bool = False
    """Whether the archive breaks off in it, or behind it."""

    @property
    def lost(self) -> tuple[str, ...]:
        """In a sentence without its subject, what of its archive is lost."""
        if not self.is_last_before_damage:
            return ()
        return ("its archive is damaged, what followed is lost",)


def trace_files(paths: Sequence[Path], unpacked: Path) -> list[TraceFile]:
    """The traces at files, in folders and in archives, which are unpacked into a folder.

    Raises ConfigError for what is none.
    """
    files = []
    for path in paths:
        with _refusing(str(path)):
            files += _files_at(path, unpacked)
    return files


@contextmanager
def _refusing(name: str) -> Iterator[None]:
    """What the system denies, as a sentence."""
    try:
        yield
    except OSError as error:
        wrong = f"cannot be read ({error.strerror or error})"
        raise ConfigError(name, wrong, "name a readable trace") from None


def _files_at(path: Path, unpacked: Path) -> list[TraceFile]:
    if path.is_dir():
        found = sorted(each for each in path.iterdir() if each.name.endswith(_TRACES))
        if not found:
            raise ConfigError(
                str(path), "has no .json or .json.gz in it", "name a folder of traces"
            )
        return [TraceFile(each, str(each)) for each in found]
    if not path.exists():
        raise ConfigError(str(path), "does not exist", f"name {_KINDS}")
    if path.name.endswith(_ARCHIVES):
        return _unpacked(path, unpacked)
    return [TraceFile(path, str(path))]


def _unpacked(archive: Path, folder: Path) -> list[TraceFile]:
    """An archive's traces; of a damaged one those before the damage, the last of them marked."""
    files: list[TraceFile] = []
    damage: Exception | None = None
    try:
        with tarfile.open(archive, "r|*") as members:
            for member in members:
                content = members.extractfile(member) if member.isfile() else None
                if content is None or not member.name.endswith(_TRACES):
                    continue
                file = folder / f"{archive.name}-{len(list(folder.iterdir()))}"
                files.append(TraceFile(file, f"{archive}:{member.name}"))
                with file.open("wb") as target:
                    while block := content.read(_UNPACKED_AT_ONCE_BYTES):
                        target.write(block)
    except (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError) as error:
        damage = error
    if not files:
        wrong = f"is no archive ({damage})" if damage else "has no .json or .json.gz in it"
        raise ConfigError(str(archive), wrong, f"name {_KINDS}")
    if damage:
        files[-1] = replace(files[-1], is_last_before_damage=True)
    return sorted(files, key=lambda file: file.name)


@dataclass
class Blocks:
    """The bytes of a file or of a stretch of it, unpacked if it is packed.

    Raises ConfigError where the file cannot be read.
    """

    file: TraceFile
    start: int = 0
    stop: int | None = None
    is_damaged: bool = False
    """Whether the packed data broke off, known after the last block."""

    def __iter__(self) -> Iterator[bytes]:
        with _refusing(self.file.name), self.file.path.open("rb") as opened:
            if opened.read(len(_GZIP)) == _GZIP:
                opened.seek(0)
                yield from self._unzipped(iter(lambda: opened.read(_BLOCK_BYTES), b""))
                return
            opened.seek(self.start)
            left = self.stop - self.start if self.stop is not None else None
            while block := opened.read(_BLOCK_BYTES if left is None else min(_BLOCK_BYTES, left)):
                left = None if left is None else left - len(block)
                yield block

    def _unzipped(self, packed: Iterator[bytes]) -> Iterator[bytes]:
        """All that can be unpacked, of one gzip stream after the other."""
        stream, is_whole = zlib.decompressobj(wbits=_WITH_HEADER), True
        for packed_block in packed:
            block = packed_block
            while block:
                before, is_whole = stream.copy(), False
                try:
                    text = stream.decompress(block, _BLOCK_BYTES)
                except zlib.error:
                    self.is_damaged = True
                    yield from _up_to_the_damage(before, block)
                    return
                yield text
                block = stream.unconsumed_tail
                if stream.eof:
                    block = stream.unused_data.lstrip(b"\0")
                    stream, is_whole = zlib.decompressobj(wbits=_WITH_HEADER), True
        self.is_damaged = not is_whole
        yield stream.flush()


def _up_to_the_damage(stream: "zlib._Decompress", block: bytes) -> Iterator[bytes]:
    with suppress(zlib.error):
        for byte in block:
            yield stream.decompress(bytes((byte,)))


@dataclass(frozen=True)
class Size:
    """How large a file is, and whether it is packed."""

    bytes: int
    is_packed: bool


def size_of(file: TraceFile) -> Size:
    """Raises ConfigError where the file cannot be read."""
    with _refusing(file.name), file.path.open("rb") as opened:
        is_packed = opened.read(len(_GZIP)) == _GZIP
        return Size(file.path.stat().st_size, is_packed)
