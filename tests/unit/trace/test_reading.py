"""Traces from files: folders, archives, stretches of one file in several processes."""

import io
import json
import tarfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kopeck.api.errors import ConfigError
from kopeck.trace.files import TraceFile, trace_files
from kopeck.trace.framing import pieces
from kopeck.trace.parallel_reading import read_summaries
from kopeck.trace.rank_reader import read_rank, read_rank_on_cores
from kopeck.trace.report import report_of
from tests.unit.trace.traces import (
    FOLDER,
    a_call,
    a_kernel,
    a_trace,
    all_reduce,
    needs_shared_traces,
    shared,
    written,
)

_EVENTS = [
    event
    for number in range(3000)
    for event in (
        a_call(number * 100, 5, number, f"cudaLaunchKernel{number % 7}"),
        all_reduce(number * 100 + 10, 20, correlation=number)
        if number % 5 == 0
        else a_kernel(number * 100 + 10, 10, f"gemm {number % 11}", correlation=number),
    )
]


def _nothing() -> None:
    pass


@settings(max_examples=30)
@given(st.integers(1, 5000))
def test_events_are_whole_wherever_blocks_end(block_bytes: int) -> None:
    text = json.dumps(_EVENTS[:40], indent=1).encode()[1:]
    blocks = (text[at : at + block_bytes] for at in range(0, len(text), block_bytes))
    *whole, rest = pieces(blocks, b'"ph"')
    found = [event for piece in whole for event in json.loads(piece)]
    assert [*found, *json.loads(b"[" + rest)] == _EVENTS[:40]


@pytest.mark.parametrize("cores", [2, 3, 7])
@pytest.mark.parametrize("indent", [None, 2])
def test_a_file_in_stretches_is_the_same_as_in_one(
    cores: int, indent: int | None, tmp_path: Path
) -> None:
    text = json.dumps({"distributedInfo": {"rank": 3}, "traceEvents": _EVENTS}, indent=indent)
    file = TraceFile(written(tmp_path, text), "trace.json")
    with ThreadPoolExecutor(cores) as pool:
        split = read_rank_on_cores(file, pool, cores, least_bytes=0)
    whole = read_rank(file)
    assert (split.origin, split.lost) == (whole.origin, whole.lost)
    for one, other in zip(astuple(split.events), astuple(whole.events), strict=True):
        assert np.array_equal(one, other) if isinstance(one, np.ndarray) else one == other


def test_a_stretch_that_is_damaged_loses_no_more_than_in_one(tmp_path: Path) -> None:
    text = json.dumps({"traceEvents": _EVENTS}).replace('"gemm 3"', "{]", 1)
    file = TraceFile(written(tmp_path, text), "trace.json")
    with ThreadPoolExecutor(2) as pool:
        split = read_rank_on_cores(file, pool, 2, least_bytes=0)
    assert len(split.events) == len(_EVENTS) - 1
    assert split.lost == read_rank(file).lost


def test_a_folder_has_one_trace_per_rank(tmp_path: Path) -> None:
    written(tmp_path, a_trace(a_kernel(0, 1), rank=1, world_size=2), "b.json")
    written(tmp_path, a_trace(a_kernel(0, 1), rank=0, world_size=2), "a.json.gz")
    written(tmp_path, "no trace", "notes.txt")
    files = trace_files([tmp_path], tmp_path)
    assert [Path(file.name).name for file in files] == ["a.json.gz", "b.json"]
    assert [each.origin.rank for each in read_summaries(files, _nothing).measured] == [0, 1]


def _archive(folder: Path) -> Path:
    archive = folder / "job.tar.gz"
    with tarfile.open(archive, "w:gz") as target:
        for rank in (1, 0):
            content = a_trace(*_EVENTS, rank=rank, world_size=2).encode()
            member = tarfile.TarInfo(f"job/rank{rank}.json")
            member.size = len(content)
            target.addfile(member, io.BytesIO(content))
    return archive


@pytest.fixture
def unpacked(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "unpacked"
    folder.mkdir()
    return folder


def test_an_archive_has_one_trace_per_rank(tmp_path: Path, unpacked: Path) -> None:
    files = trace_files([_archive(tmp_path)], unpacked)
    assert [file.name.rpartition(":")[2] for file in files] == ["job/rank0.json", "job/rank1.json"]
    assert [read_rank(file).origin.rank for file in files] == [0, 1]


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_an_archive_that_breaks_off_keeps_what_is_before_it(
    share: float, tmp_path: Path, unpacked: Path
) -> None:
    archive = _archive(tmp_path)
    content = archive.read_bytes()
    archive.write_bytes(content[: int(share * len(content))])
    traces = [read_rank(file) for file in trace_files([archive], unpacked)]
    assert sum(len(trace.events) for trace in traces) > 0
    assert "its archive is damaged, what followed is lost" in sum(
        (each.lost for each in traces), ()
    )


@needs_shared_traces
def test_ranks_measured_in_processes_are_the_same_as_in_one(tmp_path: Path) -> None:
    files = shared(str(tmp_path), "dlrm_8ranks_v100.tar.gz")
    alone = read_summaries(files, _nothing).measured
    told = []
    summaries = read_summaries(files, lambda: told.append(1), least_bytes=0).measured
    assert len(told) == 8
    assert [each.breakdown for each in summaries] == [each.breakdown for each in alone]
    assert [each.collectives for each in summaries] == [each.collectives for each in alone]


@pytest.mark.parametrize("least_bytes", [0, 10**9], ids=["processes", "this process"])
def test_what_is_no_trace_is_left_out_and_said(least_bytes: int, tmp_path: Path) -> None:
    written(tmp_path, a_trace(a_kernel(0, 1), rank=3), "rank3.json")
    written(tmp_path, "{}", "package.json")
    written(tmp_path, "", "rank0.json")
    (tmp_path / "rank1.json").symlink_to("gone")
    (tmp_path / "rank2.json").mkdir()
    (tmp_path / "rank4.json").symlink_to("rank4.json")
    read = read_summaries(trace_files([tmp_path], tmp_path), _nothing, least_bytes=least_bytes)
    assert [each.origin.rank for each in read.measured] == [3]
    assert [Path(file.name).name for file in read.files] == ["rank3.json"]
    assert [each.removeprefix(f"{tmp_path}/") for each in read.left_out] == [
        "package.json: has no list traceEvents, so it is no trace; it is left out",
        "rank0.json: is empty, so it is no trace; it is left out",
        "rank1.json: cannot be read (No such file or directory); it is left out",
        "rank2.json: cannot be read (Is a directory); it is left out",
        "rank4.json: cannot be read (Too many levels of symbolic links); it is left out",
    ]
    assert report_of(read.measured, read.left_out).notes[:5] == read.left_out


def test_where_nothing_is_a_trace_the_first_file_is_refused(tmp_path: Path) -> None:
    files = [written(tmp_path, text, f"{name}.json") for name, text in (("a", "{}"), ("b", ""))]
    with pytest.raises(ConfigError, match=r"a.json: has no list traceEvents.*; name what"):
        read_summaries(trace_files(files, tmp_path), _nothing, least_bytes=0)


def test_a_lone_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rank0.json").symlink_to("rank0.json")
    with pytest.raises(ConfigError, match=r"rank0.json: cannot be read \(Too many levels"):
        read_summaries([TraceFile(tmp_path / "rank0.json", "rank0.json")], _nothing)


def test_a_folder_that_the_system_denies_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot be read \(File name too long\); name"):
        trace_files([tmp_path / ("x" * 300)], tmp_path)


def test_an_archive_that_breaks_off_before_a_member_begins_keeps_the_others(
    tmp_path: Path, unpacked: Path
) -> None:
    archive = tmp_path / "job.tar"
    with tarfile.open(archive, "w") as target:
        for rank in (0, 1):
            content = a_trace(a_kernel(0, 1), rank=rank, world_size=2).encode()
            member = tarfile.TarInfo(f"rank{rank}.json")
            member.size = len(content)
            target.addfile(member, io.BytesIO(content))
            if rank == 0:
                end = target.offset + tarfile.BLOCKSIZE  # Of the next member its header alone.
    archive.write_bytes(archive.read_bytes()[:end])
    read = read_summaries(trace_files([archive], unpacked), _nothing)
    assert [each.origin.rank for each in read.measured] == [0]
    (said,) = read.left_out
    assert "rank1.json: is empty, so it is no trace, its archive is damaged, what followed" in said


@needs_shared_traces
@pytest.mark.parametrize("name", sorted(file.name for file in FOLDER.glob("h*.json.gz")))
def test_real_traces_lose_nothing(name: str, tmp_path: Path) -> None:
    (file,) = shared(str(tmp_path), name)
    assert read_rank(file).lost == ()
