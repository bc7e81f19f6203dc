"""Whatever stands in a trace, it is measured, or refused in one sentence, without a warning."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from typer.testing import CliRunner, Result

from kopeck.api.errors import ConfigError
from kopeck.cli import app
from kopeck.trace.events import LATEST_NS
from tests.unit.trace.traces import (
    BEGIN_US,
    Event,
    a_call,
    a_kernel,
    a_trace,
    all_reduce,
    an_operator,
    read,
    together,
    written,
)

_NUMBERS = (
    *("1e15", "1e16", "1e18", "9.3e18", "1e300", "1e400", "-1e300", "1e-400", "0", "-0.0", "-5"),
    *("9223372036854775807", "9223372036854775808", "123456789012345678901234567890"),
    *("1" * 400, "-" + "1" * 400, "1" * 5000),
    *("NaN", "Infinity", "-Infinity", '"12"', "null", "true", "[1]", "{}"),
)
_ARGUMENTS = {
    "correlation": (2**63, -(2**63) - 1, 10**400, "x", 1.5, None, -5),
    "stream": (2**31, 2**40, 10**400, 1e30, "zz", "9" * 30, "9" * 5000, None, [1]),
    "In msg nelems": ("x", -4, 2**70, 10**400, 2**62),
    "Group size": (0, "2", -1, 2**70),
    "Process Group Ranks": (
        *("[0,,1]", "[ , ]", "[0, 0]", "", "[]", "[" + "9" * 5000 + "]", "[\u0663, 1]", [0, 1]),
    ),
    "Process Group Name": (3,),
    "Collective name": (5,),
    "dtype": (None,),
    "Seq": (2**70, "a", -1, 10**400),
    "Src Rank": (0, 2**70),
}
_MEMBERS = {
    "pid": (None, [1], {}, 10**400),
    "tid": (1e30, 2**70),
    "cat": (None, 5),
    "ph": (None, 3),
    "name": (None, 4, "[/bold]", "[red]", "[/]", "\x1b[31mred", "a\ud800b", "x" * 5000, "", "日本"),
    "args": (None, [], "x", 3),
}
_METADATA = {
    "distributedInfo": (
        *(None, [], {"rank": "0"}, {"rank": -1, "world_size": 0}, {"rank": 5, "world_size": 2}),
        *({"rank": 2**70, "world_size": 2**70}, {"rank": 10**400}),
        {"rank": 0, "world_size": 2, "pg_config": [{"pg_name": "0", "ranks": [0, "x"]}]},
        {"rank": 0, "pg_config": [{"pg_name": ["l"], "ranks": [1]}]},
    ),
    "baseTimeNanoseconds": (2**80, 10**400, "x", -5),
    "deviceProperties": ([1], [{"name": "[/x]"}], [{"name": 5}]),
}
_DEEP = '{"a":' * 3000 + "1" + "}" * 3000


def _events() -> list[Event]:
    return [
        an_operator(-2, 20, "program"),
        an_operator(-1, 18, "aten::item"),
        a_call(0, 5, 1, "cudaStreamSynchronize"),
        a_kernel(10, 20, correlation=1),
        a_call(12, 5, 2),
        all_reduce(20, 30, correlation=2),
        a_kernel(100, 25, correlation=3),
    ]


def _text(row: int, member: str, value: Any) -> str:
    events = _events()
    events[row][member] = value
    return a_trace(*events, world_size=2)


def _contents() -> Iterator[tuple[str, str | bytes]]:
    whole = a_trace(*_events())
    for value in _NUMBERS:
        yield f"ts {value:.20}", whole.replace(f'"ts": {BEGIN_US + 10}', f'"ts": {value}')
        yield f"dur {value:.20}", whole.replace('"dur": 20,', f'"dur": {value},')
    for key, values in _ARGUMENTS.items():
        for value in values:
            args = _events()[5]["args"]
            yield f"{key} {value!r:.30}", _text(5, "args", args | {key: value})
    for key, values in _MEMBERS.items():
        for value in values:
            yield f"{key} {value!r:.20}", _text(3, key, value)
    for value in _MEMBERS["name"]:
        yield f"host {value!r:.20}", _text(0, "name", value)
    for key, values in _METADATA.items():
        for value in values:
            yield f"{key} {value!r:.40}", a_trace(*_events(), **{key: value})
    yield from _texts(whole)


def _texts(whole: str) -> Iterator[tuple[str, str | bytes]]:
    packed = gzip.compress(whole.encode())
    yield "empty", ""
    yield "null", "null"
    yield "bare list", "[]"
    yield "list of scalars", '{"traceEvents": [1, 2, null, "a", []]}'
    yield "list that is null", '{"traceEvents": null}'
    yield "list that is an object", '{"traceEvents": {}}'
    yield "cut at the list", '{"traceEvents": ['
    yield "cut at an event", '{"traceEvents": [{'
    yield "cut in a number", whole[: whole.rindex('"dur": 25') + 7]
    yield "byte order mark", b"\xef\xbb\xbf" + whole.encode()
    yield "UTF-16", whole.encode("utf-16")
    yield "no text", b"\xff\xfe\x00"
    yield "gzip magic alone", b"\x1f\x8b"
    yield "gzip header alone", packed[:10]
    yield "gzip cut", packed[:60]
    yield "gzip of nothing", gzip.compress(b"")
    yield "brackets", "[" * 5000
    yield "deep events", '{"traceEvents": [' + "[" * 20_000 + "]" * 20_000 + "]}"
    yield "deep arguments", whole.replace('"args": {', f'"args": {{"deep": {_DEEP}, ')
    yield "deep arguments alone", f'{{"traceEvents": [{{"ph": "X", "args": {_DEEP}}}]}}'
    yield "deep metadata", whole.replace('"schemaVersion": 1', f'"schemaVersion": {_DEEP}')
    for depth in range(940, 1000, 15):  # About as deep as Python lets a function be called.
        deep = '{"a":' * depth + "1" + "}" * depth
        yield f"{depth} deep", whole.replace('"args": {', f'"args": {{"deep": {deep}, ')


_CONTENTS = dict(_contents())


@pytest.mark.parametrize("content", _CONTENTS.values(), ids=_CONTENTS)
def test_any_text_is_measured_or_refused(content: str | bytes, tmp_path: Path) -> None:
    written(tmp_path, content)
    _is_answered(_trace(tmp_path))
    _is_answered(_trace(tmp_path, "--hta-compatible", "--format", "json"))
    result = _trace(tmp_path, "--format", "json")
    _is_answered(result)
    if result.exit_code == 0:
        json.loads(result.stdout, parse_constant=_refuse)


def _trace(folder: Path, *options: str) -> Result:
    return CliRunner().invoke(app, ["trace", str(folder), *options])


def _is_answered(result: Result) -> None:
    if result.exception and not isinstance(result.exception, ConfigError):
        raise result.exception


def _refuse(number: str) -> NoReturn:
    raise AssertionError(f"{number} is no JSON")


def _lost(number: str, member: str, value: str) -> tuple[tuple[str, ...], list[str]]:
    """What is said, and the names of the kernels that are left."""
    text = a_trace(a_kernel(0, 20, "first"), a_kernel(100, 25, "second"))
    trace = read(text.replace(f'"{member}": {number}', f'"{member}": {value}'))
    return trace.lost, [trace.events.name_of(row) for row in range(len(trace.events))]


@pytest.mark.parametrize("base_ns", [-1, 2**63, 10**400, "x", None], ids="{!r:.20}".format)
def test_a_base_out_of_range_is_said_and_two_ranks_are_still_split(base_ns: object) -> None:
    texts = [
        a_trace(*_events(), rank=rank, world_size=2, baseTimeNanoseconds=base)
        for rank, base in enumerate((base_ns, 10**18))
    ]
    report = together(*texts)
    assert [rank.split and rank.split.transfer_ns for rank in report.ranks] == [30_000] * 2
    (note,) = report.notes
    assert "baseTimeNanoseconds is no time before the year 2100, 0 is taken for it" in note


@pytest.mark.parametrize(
    "value", ["-1", "-1e300", "86400000000.001", "1e15", "1e18", "1" * 400], ids="{:.20}".format
)
def test_an_impossible_duration_is_a_counted_loss(value: str) -> None:
    said = ("1 event lasts less than 0 or more than a day",)
    assert _lost("20", "dur", value) == (said, ["second"])


@pytest.mark.parametrize(
    "value", ["-5", "4102444800000001", "1e16", "1e300", "1" * 400], ids="{:.20}".format
)
def test_an_impossible_time_is_a_counted_loss(value: str) -> None:
    said = ("1 event begins before 0 or after the year 2100",)
    assert _lost("1000000", "ts", value) == (said, ["second"])


def test_the_longest_and_the_latest_are_kept() -> None:
    assert _lost("20", "dur", "86400000000")[0] == ()
    assert _lost("1000000", "ts", str(LATEST_NS // 1000))[0] == ()


def test_several_losses_are_in_the_plural() -> None:
    text = a_trace(*(a_kernel(start, -1) for start in range(3)))
    assert read(text).lost == ("3 events last less than 0 or more than a day",)


@pytest.mark.parametrize(
    ("member", "value"), [("correlation", 2**63), ("stream", 2**31), ("stream", 1e30)]
)
def test_an_argument_out_of_range_is_unknown_and_the_others_stay(member: str, value: float) -> None:
    trace = read(a_trace(a_kernel(0, 20, **{"correlation": 4, "stream": 3, member: value})))
    found = {"correlation": trace.events.correlations, "stream": trace.events.streams}
    assert {key: column.tolist() for key, column in found.items()} == {
        "correlation": [4],
        "stream": [3],
        member: [-1],
    }
    assert trace.lost == ("1 event has arguments that cannot be read",)


def test_arguments_of_a_collective_that_cannot_be_read_are_counted() -> None:
    text = a_trace(all_reduce(0, 20, Seq=2**70))
    assert read(text).lost == ("1 event has arguments that cannot be read",)
