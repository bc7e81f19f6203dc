"""What a complete checkpoint consists of.

Bytes that flip on disk load without an error and give other weights, so every file is compared
with the checksum taken when it was written.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from kopeck_trainer.checkpoint.durable import write_durably

MANIFEST = "manifest.json"
VERSION = 1


@dataclass(frozen=True, kw_only=True)
class Position:
    """How far training had come."""

    step: int
    samples: int
    """Consumed by the whole job: the cursor into the data."""


@dataclass(frozen=True, kw_only=True)
class FileRecord:
    size: int
    """In bytes."""
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Manifest:
    position: Position
    files: Mapping[str, FileRecord]
    """By name inside the checkpoint."""


def record_files(checkpoint: Path, names: Iterable[str]) -> dict[str, FileRecord]:
    return {name: _record(checkpoint / name) for name in names}


def write_manifest(checkpoint: Path, manifest: Manifest) -> None:
    content = {
        "v": VERSION,
        **asdict(manifest.position),
        "files": {name: asdict(record) for name, record in sorted(manifest.files.items())},
    }
    write_durably(checkpoint / MANIFEST, json.dumps(content, indent=1) + "\n")


def read_manifest(checkpoint: Path) -> Manifest | None:
    """None where it is damaged."""
    try:
        content = json.loads((checkpoint / MANIFEST).read_text())
        return Manifest(
            position=Position(step=content["step"], samples=content["samples"]),
            files={name: FileRecord(**record) for name, record in content["files"].items()},
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def damaged_files(checkpoint: Path, files: Mapping[str, FileRecord]) -> list[str]:
    """Those of `files` that are missing, unreadable or not as they were written."""
    return [name for name, record in files.items() if not _is_intact(checkpoint / name, record)]


def _record(path: Path) -> FileRecord:
    with path.open("rb") as file:
        return FileRecord(
            sha256=hashlib.file_digest(file, "sha256").hexdigest(), size=path.stat().st_size
        )


def _is_intact(path: Path, record: FileRecord) -> bool:
    try:
        return path.stat().st_size == record.size and _record(path) == record
    except OSError:
        return False
