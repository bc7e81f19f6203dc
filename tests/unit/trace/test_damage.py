"""Bad traces: what is whole is measured, what was lost is said, nothing is a traceback."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kopeck.api.errors import ConfigError
from kopeck.trace.files import trace_files
from tests.unit.trace.traces import (
    Event,
    a_call,
    a_kernel,
    a_trace,
    an_operator,
    measured,
    nccl,
    needs_shared_traces,
    read,
    report_on,
    together,
    written,
)

_KERNELS = [a_kernel(number * 100, 10, f"gemm {number}") for number in range(2000)]
"""More text than one block."""


def _names(text: str | bytes, name: str = "rank0.json") -> list[str]:
    events = read(text, name).events
    return [events.name_of(row) for row in range(len(events))]


def _lost(text: str | bytes, name: str = "rank0.json") -> tuple[str, ...]:
    return read(text, name).lost


def test_a_whole_trace_loses_nothing() -> None:
    text = a_trace(*_KERNELS)
    assert _names(text) == [event["name"] for event in _KERNELS]
    assert _lost(text) == ()


@settings(max_examples=20)
@given(st.floats(0.01, 0.999))
def test_a_trace_that_is_cut_short_keeps_what_is_before_the_cut(share: float) -> None:
    text = a_trace(*_KERNELS)
    end = text.rindex("]")
    begin = text.index('"traceEvents"') + len('"traceEvents": [')
    cut = text[: begin + int(share * (end - begin))]
    whole = sum(f'"name": "gemm {number}"' in cut for number in range(2000))
    assert len(_names(cut)) in {whole - 1, whole}
    assert "the file is cut short, events after its end are lost" in _lost(cut)


@settings(max_examples=20)
@given(st.floats(0.2, 0.999))
def test_packed_data_that_breaks_off_keeps_what_is_before_it(share: float) -> None:
    packed = gzip.compress(a_trace(*_KERNELS).encode(), mtime=0)
    trace = read(packed[: int(share * len(packed))])
    count = len(trace.events)
    assert 0 < count <= 2000
    assert [trace.events.name_of(row) for row in range(count)] == [
        event["name"] for event in _KERNELS[:count]
    ]
    assert "its packed data is damaged" in trace.lost


def test_packed_data_with_a_wrong_byte_keeps_what_is_before_it() -> None:
    packed = bytearray(gzip.compress(a_trace(*_KERNELS).encode(), mtime=0))
    packed[len(packed) // 2] ^= 0xFF
    trace = read(bytes(packed))
    assert len(trace.events) > 500
    assert "its packed data is damaged" in trace.lost


def test_several_packed_streams_are_one_trace() -> None:
    text = a_trace(*_KERNELS).encode()
    packed = gzip.compress(text[:1000]) + gzip.compress(text[1000:])
    assert len(read(packed).events) == 2000
    assert read(packed).lost == ()


@pytest.mark.parametrize(
    ("damage", "name"),
    [
        ("a\x07b", "a b"),
        ("two\nlines", "two lines"),
        ("C:\\program", "C:\\program"),
        ("a\\u12", "a\\u12"),
    ],
)
def test_what_json_forbids_in_a_string_is_mended(damage: str, name: str) -> None:
    text = a_trace(*_KERNELS).replace("gemm 1000", damage)
    assert _names(text)[1000] == name
    assert len(_names(text)) == 2000
    assert _lost(text) == ("characters that JSON forbids were mended",)


def test_bytes_that_are_no_text_are_mended() -> None:
    text = a_trace(*_KERNELS).encode().replace(b"gemm 1000", b"gemm \xff")
    assert _names(text)[1000] == "gemm \ufffd"


def test_good_escapes_are_kept_beside_bad_ones() -> None:
    text = a_trace(a_kernel(0, 1, 'a"b\\c\u00e9'), a_kernel(5, 1, "BAD")).replace("BAD", "\\p")
    assert _names(text) == ['a"b\\c\u00e9', "\\p"]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "nan"])
def test_numbers_that_are_none_are_unknown(number: str) -> None:
    text = a_trace(*_KERNELS).replace('"ts": 1000100', f'"ts": {number}')
    assert len(_names(text)) == 1999
    assert "1 event has no time, or begins at 0" in _lost(text)


def test_an_argument_that_is_no_number_leaves_all_else() -> None:
    text = a_trace(*_KERNELS).replace('"stream": 7', '"stream": 7, "bandwidth": NaN')
    assert len(_names(text)) == 2000
    assert _lost(text) == ("characters that JSON forbids were mended",)


def test_a_name_that_says_nan_is_kept() -> None:
    text = a_trace(a_kernel(0, 1, "check NaN, inf"), a_kernel(5, 1, "BAD")).replace("BAD", "\\p")
    assert _names(text)[0] == "check NaN, inf"


def test_an_event_that_is_none_is_lost_alone() -> None:
    text = a_trace(*_KERNELS).replace('"gemm 1000"', "{]")
    assert len(_names(text)) == 1999
    assert "1 event cannot be read" in _lost(text)


def test_a_time_that_no_float_tells_is_read_beside_damage() -> None:
    text = a_trace(a_kernel(0, 1, "DAMAGED")).replace("DAMAGED", "a\x07b")
    events = read(text.replace('"ts": 1000000', '"ts": 1700000000000000.123')).events
    assert events.starts_ns.tolist() == [1_700_000_000_000_000_123]


def test_an_event_of_wrong_types_is_lost_alone() -> None:
    text = a_trace(*_KERNELS).replace('"gemm 1000"', "[1]")
    assert len(_names(text)) == 1999
    assert _lost(text) == ("1 event cannot be read",)


def test_events_without_a_duration_are_told() -> None:
    endless = a_kernel(0, 1)
    del endless["dur"]
    assert _lost(a_trace(endless, a_kernel(5, 1))) == ("1 event has no duration",)
    assert _lost(a_trace(endless, endless)) == ("2 events have no duration",)


def test_events_that_begin_at_zero_do_not_stretch_the_trace() -> None:
    part = measured(a_trace(a_kernel(0, 1) | {"ts": 0}, a_kernel(5, 1))).breakdown
    assert part is not None
    assert part.span_ns == 1000
    assert _lost(a_trace(a_kernel(0, 1) | {"ts": 0})) == ("1 event has no time, or begins at 0",)


def test_arguments_of_wrong_types_leave_the_event() -> None:
    text = a_trace(a_kernel(0, 10, correlation="x"), a_kernel(20, 5))
    part = measured(text).breakdown
    assert part is not None
    assert part.compute_ns == 15_000
    assert _lost(text) == ("1 event has arguments that cannot be read",)


def test_a_rank_that_is_not_told_is_taken_from_the_name() -> None:
    trace = read(a_trace(a_kernel(0, 1), rank=None), "job_rank-12.pt.trace.json")
    assert trace.origin.rank == 12
    assert trace.lost == ("its rank is not told, 12 is taken from its name",)


def test_a_rank_that_nothing_tells_is_measured_alone() -> None:
    trace = read(a_trace(a_kernel(0, 1), rank=None), "trace.json")
    assert trace.origin.rank is None
    report = together(a_trace(a_kernel(0, 1)), a_trace(a_kernel(0, 1), rank=1))
    assert len(report.ranks) == 2


@needs_shared_traces
def test_a_real_trace_without_its_rank_is_read() -> None:
    report = report_on("hta_rank_missing.json.gz")
    assert report.ranks[0].summary.origin.rank is None
    assert "its rank is not told" in " ".join(report.notes)


@needs_shared_traces
def test_a_trace_of_a_cpu_alone_has_no_gpu_time() -> None:
    report = report_on("hta_cpu_only.json.gz")
    assert report.ranks[0].summary.breakdown is None
    assert report.notes == (f"{report.ranks[0].summary.origin.file}: nothing ran on a GPU",)


def test_a_trace_of_amd_is_read_as_any_other() -> None:
    events = [
        a_call(0, 5, 1, "hipExtModuleLaunchKernel"),
        a_kernel(20, 30, "Cijk_Ailk_Bljk_BBS_BH_MT256x256x64", correlation=1, stream="3"),
        a_kernel(60, 10, "CopyDeviceToHost", cat="gpu_memcpy", correlation=2),
        nccl(80, 20, "Generic_4", correlation=3),
        an_operator(200, 50, "aten::item"),
        a_call(210, 30, 4, "hipStreamSynchronize"),
    ]
    summary = measured(a_trace(*events))
    part = summary.breakdown
    assert part is not None
    assert (part.compute_ns, part.memory_ns, part.communication_ns) == (30_000, 10_000, 20_000)
    assert summary.launches is not None
    assert summary.launches.launched == 1
    assert [each.call for each in summary.synchronisations] == ["hipStreamSynchronize"]


def test_kernels_before_their_launch_are_told() -> None:
    early = [a_call(50, 5, 1), a_kernel(20, 10, correlation=1)]
    report = together(a_trace(*early))
    assert any("1 of 1 events begin before their launch" in note for note in report.notes)
    launches = report.ranks[0].summary.launches
    assert launches is not None
    assert launches.delay_p50_seconds == 0


def test_two_gpus_in_one_trace_are_told() -> None:
    text = a_trace(a_kernel(0, 1), a_kernel(5, 1) | {"pid": 1})
    assert _lost(text) == ("its events are of 2 GPUs, whose times are taken together",)


def test_metadata_that_cannot_be_read_is_told() -> None:
    text = a_trace(a_kernel(0, 1)).replace('"backend"', "{{{")
    text = text.replace('"traceName": "test"', "]]")
    assert "its metadata cannot be read" in _lost(text, "trace.json")


@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        ("", "is empty"),
        ('{"a": 1}', "has no list traceEvents"),
        ("no JSON at all", "has no list traceEvents"),
        ('{"traceEvents"', "has no list traceEvents"),
    ],
)
def test_a_file_that_is_no_trace_is_refused_in_a_sentence(content: str, wrong: str) -> None:
    with pytest.raises(ConfigError, match=f"^rank0.json: {wrong}, so it is no trace; name what"):
        read(content)


def test_a_trace_without_events_is_whole() -> None:
    assert _names(a_trace()) == []
    assert _lost(a_trace()) == ()


def test_a_bare_list_of_events_is_a_trace() -> None:
    assert _names(json.dumps(_KERNELS[:3])) == ["gemm 0", "gemm 1", "gemm 2"]


def test_paths_that_hold_no_trace_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none.json: does not exist; name .json"):
        trace_files([tmp_path / "none.json"], tmp_path)
    with pytest.raises(ConfigError, match=r"has no .json or .json.gz in it; name a folder"):
        trace_files([tmp_path], tmp_path)
    archive = written(tmp_path, "nothing packed", "job.tar")
    with pytest.raises(ConfigError, match=r"job.tar: is no archive \(.*\); name"):
        trace_files([archive], tmp_path)


def _reordered(event: Event, *first: str) -> Event:
    return {key: event[key] for key in (*first, *(key for key in event if key not in first))}


@pytest.mark.parametrize("key", ["ph", "name", "args", "ts"])
@pytest.mark.parametrize("indent", [None, 2])
def test_events_may_begin_with_any_key(key: str, indent: int | None) -> None:
    """With one that other events begin otherwise, and with metadata of many objects behind."""
    events = [_reordered(event, key) for event in _KERNELS]
    events[700] = _reordered(events[700], "tid", "pid")
    behind = [{"ph": number, "name": {"ts": 1}} for number in range(20_000)]
    text = json.dumps({"traceEvents": events, "later": behind}, indent=indent)
    assert _names(text) == [event["name"] for event in _KERNELS]
    assert _lost(text, "trace.json") == ()
