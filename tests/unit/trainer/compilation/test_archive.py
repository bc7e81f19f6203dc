import os
from dataclasses import replace
from pathlib import Path

import pytest

from kopeck_trainer.compilation.archive import CacheArchive, archive_file
from kopeck_trainer.compilation.archiving import archiving
from kopeck_trainer.config import ActivationsConfig, TrainConfig, TrainingConfig
from kopeck_trainer.run_directory import warm_file
from tests.waiting import eventually

TRAINING = TrainingConfig(global_batch_size=8, micro_batch_size=2, steps=4)
CONFIG = TrainConfig(entrypoint="toy:build", training=TRAINING)


def an_archive(tmp_path: Path, attempt: int, said: list[str]) -> CacheArchive:
    """The shared file, and a directory of this attempt's own."""
    directory = tmp_path / f"node-{attempt}"
    directory.mkdir()
    return CacheArchive(
        file=tmp_path / "cache" / "inductor.tar.gz", directory=directory, say=said.append
    )


def packed(tmp_path: Path) -> CacheArchive:
    archive = an_archive(tmp_path, 0, [])
    archive.unpack()  # there is none yet, which is nothing to say
    (archive.directory / "ab").mkdir()
    (archive.directory / "ab" / "kernel.so").write_bytes(b"code")
    (archive.directory / "locks").mkdir()
    (archive.directory / "locks" / "kernel").touch()
    archive.pack()
    return archive


def test_what_was_compiled_is_there_for_the_next_attempt(tmp_path: Path) -> None:
    packed(tmp_path)
    said: list[str] = []
    archive = an_archive(tmp_path, 1, said)
    archive.unpack()
    assert (archive.directory / "ab" / "kernel.so").read_bytes() == b"code"
    assert said == ["compile cache unpacked, 1 files"]


def test_an_archive_is_replaced_only_by_one_that_has_more(tmp_path: Path) -> None:
    packed(tmp_path)
    archive = an_archive(tmp_path, 1, [])
    archive.unpack()
    before = archive.file.stat().st_ino
    archive.pack()
    assert archive.file.stat().st_ino == before
    (archive.directory / "another.so").write_bytes(b"more")
    archive.pack()
    assert archive.file.stat().st_ino != before
    assert [path.name for path in archive.file.parent.iterdir()] == ["inductor.tar.gz"]


@pytest.mark.parametrize("damage", [b"", b"no archive", None])
def test_a_damaged_archive_is_said_and_not_used(tmp_path: Path, damage: bytes | None) -> None:
    file = packed(tmp_path).file
    file.write_bytes(file.read_bytes()[:-40] if damage is None else damage)
    said: list[str] = []
    archive = an_archive(tmp_path, 1, said)
    archive.unpack()
    assert list(archive.directory.iterdir()) == []
    assert len(said) == 1
    assert said[0].startswith(f"the compile cache {file} is not used (")


def test_an_archive_that_others_may_write_is_not_used(tmp_path: Path) -> None:
    packed(tmp_path).file.chmod(0o666)
    said: list[str] = []
    archive = an_archive(tmp_path, 1, said)
    archive.unpack()
    assert "others may write it" in said[0]
    assert list(archive.directory.iterdir()) == []


def test_a_folder_that_cannot_be_made_ends_nothing(tmp_path: Path) -> None:
    said: list[str] = []
    archive = an_archive(tmp_path, 0, said)
    archive.file.parent.touch()  # a file where the folder should be
    (archive.directory / "kernel.so").touch()
    archive.pack()
    assert said[0].startswith(f"the compile cache {archive.file} cannot be written (")


def test_an_archive_that_takes_too_long_is_given_up_and_leaves_nothing(tmp_path: Path) -> None:
    said: list[str] = []
    archive = an_archive(tmp_path, 0, said)
    (archive.directory / "kernel.so").touch()
    warm_file(tmp_path, 0).touch()
    archive.file.parent.mkdir()
    hanging = archive.file.with_suffix(f".{os.getpid()}.tmp")
    os.mkfifo(hanging)  # cannot be written before it is read
    with archiving(archive, tmp_path, 1, patience_seconds=lambda: 0.0):
        pass
    assert said == []

    def is_given_up() -> None:
        assert said == [f"the compile cache {archive.file} cannot be written (it took too long)"]

    with hanging.open("rb"):
        eventually(is_given_up)
    assert list(archive.file.parent.iterdir()) == []


def test_the_same_model_and_shapes_share_a_file_whatever_the_world_size(tmp_path: Path) -> None:
    def file_of(**training: object) -> Path:
        return archive_file(tmp_path, replace(CONFIG, training=replace(TRAINING, **training)))  # type: ignore[arg-type]

    assert file_of() == file_of(steps=9, global_batch_size=16)
    assert file_of() != file_of(micro_batch_size=4)
    assert file_of() != file_of(activations=ActivationsConfig(mode="full"))
    assert file_of() != archive_file(tmp_path, replace(CONFIG, parameters={"dim": 2}))
