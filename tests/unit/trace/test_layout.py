"""Events in Kineto's own lines are read as any others are, only faster."""

import gzip
import json
import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopeck.trace.columns import Numbers, joined
from kopeck.trace.decoding import PieceDecoder
from kopeck.trace.events import Events
from kopeck.trace.layout import FirstLines, Head, rows_in_layout
from tests.unit.trace.traces import (
    FOLDER,
    Event,
    a_call,
    a_kernel,
    a_step,
    all_reduce,
    an_operator,
    needs_shared_traces,
    read,
)

_EVENTS = [
    a_step(1, 0, 900),
    an_operator(1, 50, "aten::mm"),
    an_operator(2, 40, "aten::mm") | {"args": {"Input Dims": [[2, 3], []], "Module": "a[0]"}},
    a_call(3, 5, 17),
    a_kernel(20, 30.5, "void gemm<{lambda(int)#1}>(float*)", correlation=17),
    all_reduce(60, 12.125, correlation=18),
    a_kernel(80, 0.001, "Memset (Device)", cat="gpu_memset", correlation=19, stream=9),
    an_operator(90, 1, 'say "hé"\\', "python_function"),
]


def _lines_of(event: Event) -> str:
    """As Kineto writes it: an event with a duration, or a flow."""

    def members(*keys: str) -> str:
        return ", ".join(f"{json.dumps(key)}: {json.dumps(event[key])}" for key in keys)

    if event["ph"] != "X":
        return f"  {{\n    {members('ph', 'id', 'pid')},\n    {members('cat', 'name')}\n  }}"
    head = members("ph", "cat", "name", "pid", "tid")
    times = f'"ts": {event["ts"]:.3f}, "dur": {event["dur"]:.3f}'
    if "args" not in event:
        return f"  {{\n    {head},\n    {times}\n  }}"
    args = json.dumps(event["args"])[1:-1]
    return f'  {{\n    {head},\n    {times},\n    "args": {{\n      {args}\n    }}\n  }}'


def _piece(events: Sequence[Event]) -> bytes:
    return b"[" + ",\n".join(map(_lines_of, events)).encode().strip() + b"]"


def _laid_out_otherwise(piece: bytes) -> bytes:
    """The same JSON, of which no line between events is as Kineto's."""
    return piece.replace(b"\n  },\n", b"\n  } ,\n").replace(b"\n  }]", b"\n  } ]")


def _is_laid_out(piece: bytes) -> bool:
    return rows_in_layout(piece, FirstLines(lambda _: Head(0))) is not None


def _decoded(piece: bytes) -> tuple[Events, tuple[str, ...]]:
    decoder = PieceDecoder(b'"ph"')
    decoder.add(piece)
    lost = decoder.columns.losses.sentences()
    return joined([decoder.columns]), lost


def _told(events: Events) -> list[object]:
    """All that a table tells, by rows; which numbers threads have does not matter."""
    names = [events.name_of(row) for row in range(len(events))]
    columns = (events.categories, events.starts_ns, events.ends_ns)
    numbers = [column.tolist() for column in (*columns, events.correlations, events.streams)]
    threads = Numbers()
    places = [threads[thread] for thread in events.threads.tolist()]
    return [names, places, *numbers, events.collectives]


def _are_read_alike(piece: bytes, *, has_flows: bool = False) -> None:
    (events, lost), (expected, expected_lost) = (
        _decoded(piece),
        _decoded(_laid_out_otherwise(piece)),
    )
    assert _told(events) == _told(expected)
    assert lost == expected_lost or (has_flows and not lost)


def test_what_kineto_writes_is_read_by_its_lines() -> None:
    assert _is_laid_out(_piece(_EVENTS))
    assert not _is_laid_out(_laid_out_otherwise(_piece(_EVENTS)))
    events, lost = _decoded(_piece(_EVENTS))
    assert [events.name_of(row) for row in range(len(events))] == [
        event["name"] for event in _EVENTS
    ]
    assert lost == ()
    _are_read_alike(_piece(_EVENTS))


_names = st.text(st.sampled_from('ab {}[]",:\\\n\u00e9\u2028'), max_size=8)
_times = st.integers(1, 10**6).map(lambda thousandths: thousandths / 1000)
_args = st.dictionaries(
    st.sampled_from(["stream", "correlation", "Collective name", "dtype", "grid", "x"]),
    st.one_of(st.integers(0, 99), _names, st.lists(_names, max_size=2), st.none()),
)
_timed = st.fixed_dictionaries(
    {
        "ph": st.just("X"),
        "cat": st.sampled_from(
            ["kernel", "gpu_memcpy", "cuda_runtime", "cpu_op", "user_annotation", "overhead", "new"]
        ),
        "name": _names,
        "pid": st.one_of(st.integers(-1, 3), st.just("Spans")),
        "tid": st.integers(0, 3),
        "ts": _times.map(lambda time: 10_000 + time),
        "dur": _times,
    },
    optional={"args": _args},
)
_flows = st.fixed_dictionaries(
    {
        "ph": st.sampled_from("stfM"),
        "id": st.integers(0, 9),
        "pid": st.integers(0, 3),
        "cat": st.sampled_from(["ac2g", "kernel"]),
        "name": _names,
    }
)
_any_events = st.lists(st.one_of(_timed, _flows), min_size=1, max_size=8)


@given(_any_events)
def test_events_in_kinetos_lines_are_read_as_in_any_other(events: list[Event]) -> None:
    _are_read_alike(_piece(events))


@given(_any_events, st.data())
def test_changed_text_that_is_json_is_read_as_in_any_other_layout(
    events: list[Event], data: st.DataObject
) -> None:
    """What is no JSON is read without an error."""
    piece = _piece(events)
    at = data.draw(st.integers(1, len(piece) - 2), "at")
    length = data.draw(st.integers(0, 9), "length")
    new = data.draw(
        st.sampled_from(["", "}", "{", "[", '"', "\n", " ", "7", "X", "\\", ","])
    ).encode()
    changed = piece[:at] + new + piece[min(at + length, len(piece) - 1) :]
    try:
        json.loads(changed)
    except (json.JSONDecodeError, UnicodeDecodeError):
        _decoded(changed)
    else:
        _are_read_alike(changed, has_flows=any(event["ph"] != "X" for event in events))


def test_what_is_wrong_in_a_flow_is_told_in_other_layouts_alone() -> None:
    """Nothing here needs a flow."""
    piece = _piece([{"ph": "s", "id": 0, "pid": 0, "cat": "kernel", "name": 7}])
    assert _is_laid_out(piece)
    assert _decoded(piece)[1] == ()
    assert _decoded(_laid_out_otherwise(piece))[1] == ("1 event cannot be read",)
    _are_read_alike(piece, has_flows=True)


@pytest.mark.parametrize(
    ("found", "other"),
    [
        (b'"ph": "X", "cat"', b'"cat": "kernel", "ph": "X", "cat"'),
        (b'"ts": ', b'"ts":'),
        (b'"ts": 1000001.000, "dur": 50.000', b'"dur": 50.000, "ts": 1000001.000'),
        (b'"ts": 1000001.000', b'"ts": 1000001'),
        (b'"ts": 1000001.000', b'"ts": 1000001.0000'),
        (b'"ts": 1000001.000', b'"ts": -100001.000'),
        (b'"ts": 1000001.000', b'"ts": 0000000.000'),
        (b'"ts": 1000001.000', b'"ts": 10000001.000'),
        (b'"dur": 50.000', b'"dur": 5e1'),
        (b'"dur": 50.000', b'"dur": -50.000'),
        (b'"dur": 50.000', b'"dur": 1234567890123.000'),
        (b'"dur": 50.000', b'"dur": 86400000000.001'),
        (b'"ts": 1000', b'"ts": 4102444800001000'),
        (b"    ", b"\t"),
        (b"\n", b"\r\n"),
        (b'\n    "args": {\n', b'\n    "args": { '),
        (b'\n    "args": {\n', b'\n    "id": 1,\n    "args": {\n'),
        (b'\n    "args": {\n', b'\n    "argz": {\n'),
        (b"\n    }\n", b"\n   } \n"),
        (b"  },\n  {\n", b"  }, {\n"),
        (b"  },\n  {\n", b"  } \n ,{\n"),
    ],
)
def test_another_layout_is_left_to_the_general_decoder(found: bytes, other: bytes) -> None:
    piece = _piece(_EVENTS)
    assert found in piece
    changed = piece.replace(found, other)
    assert not _is_laid_out(changed)
    if b"0000000.000" not in changed:  # Which is no JSON.
        _are_read_alike(changed)


def test_an_event_that_hides_in_the_arguments_of_another_is_found() -> None:
    hidden = json.dumps(a_kernel(500, 7, "hidden")).encode()
    between = b'"b": 0}}, ' + hidden + b', {"args": {"c": 1'
    piece = _piece(_EVENTS).replace(b'"Module": "a[0]"', between)
    json.loads(piece)
    assert "hidden" in _told(_decoded(piece)[0])[0]
    _are_read_alike(piece)


def test_an_event_inside_another_is_none() -> None:
    piece = _piece(_EVENTS).replace(b'"Module": "a[0]"', b'"b": [{"c": {"d": 1')
    piece = piece.replace(b'"stream": 9', b'"stream": 9}}]}}, {"x": {"f": 2')
    json.loads(piece)
    _are_read_alike(piece)


@pytest.mark.parametrize("damage", [b'"Module: "a[0]"', b'"Module": NaN', b'"Module": "\\p\x07"'])
def test_damage_in_what_nothing_needs_costs_nothing(damage: bytes) -> None:
    piece = _piece(_EVENTS).replace(b'"Module": "a[0]"', damage)
    whole, damaged = _decoded(_piece(_EVENTS)), _decoded(piece)
    assert (_told(damaged[0]), damaged[1]) == (_told(whole[0]), ())


@pytest.mark.parametrize(
    ("found", "damage"),
    [
        (b'"correlation": 18', b'"correlation": 18, "bandwidth": NaN'),
        (b'"correlation": 18', b'"correlation": "x"'),
        (b'"correlation": 18', b'"correlation": 18, "x": "\\p"'),
        (b"void gemm", b"void\x07gemm"),
        (b"void gemm", b"void \xff"),
        (b'"cat": "cuda_runtime"', b'"cat": 5'),
        (b'"dur": 30.500', b'"dur": NaN'),
        (b'"dur": 30.500', b'"dur": 3050'),
    ],
)
def test_damage_in_what_is_needed_is_mended_and_told_as_ever(found: bytes, damage: bytes) -> None:
    piece = _piece(_EVENTS)
    assert found in piece
    _are_read_alike(piece.replace(found, damage))


def test_a_first_line_is_parsed_once() -> None:
    parsed: list[bytes] = []

    def head(line: bytes) -> Head:
        parsed.append(line)
        return Head(0)

    first_lines = FirstLines(head)
    many = [a_kernel(number, 1, f"gemm {number % 3}") for number in range(1, 300)]
    for _ in range(2):
        assert rows_in_layout(_piece(many), first_lines) is not None
    assert len(parsed) == 3


@needs_shared_traces
@pytest.mark.parametrize("name", sorted(file.name for file in FOLDER.glob("h*.json.gz")))
def test_real_traces_are_read_as_in_any_other_layout(name: str) -> None:
    text = gzip.decompress((FOLDER / name).read_bytes())
    otherwise = re.sub(rb"\n( *)\},\n", rb"\n\1} ,\n", text)
    one, other = read(text, name), read(otherwise, name)
    assert (_told(one.events), one.lost) == (_told(other.events), other.lost)
