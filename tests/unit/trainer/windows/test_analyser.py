"""The process that measures a window, talked with as a rank does."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kopeck.trace.steps import MARK
from kopeck_trainer.windows.conversation import Conversation, LostWindowError
from tests.unit.trace.traces import a_kernel, a_trace, all_reduce, written

RANKS_QUESTION = '{"ranks": [%s, %s]}'


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """One step of 100 µs: 20 of communication, half of it beside computation."""
    events = [a_kernel(0, 0, MARK), all_reduce(10, 20), a_kernel(20, 30), a_kernel(100, 0, MARK)]
    return written(tmp_path, a_trace(*events, world_size=2))


@pytest.fixture
def analyser(trace: Path) -> Iterator[Conversation]:
    with Conversation(trace, 1, None) as conversation:
        yield conversation


def test_it_tells_the_ratios_once_it_knows_what_the_fastest_rank_took(
    analyser: Conversation,
) -> None:
    own = json.loads(analyser.answer())
    assert own["durations_ns"] == [20_000]
    other = own | {"durations_ns": [5_000]}
    shortest = analyser.ask(RANKS_QUESTION % (json.dumps(own), json.dumps(other)))
    assert json.loads(shortest) == [5_000]
    assert json.loads(analyser.ask(f'{{"shortest": {shortest}}}')) == {
        "comm_ratio": 0.2,
        "exposed_ratio": 0.1,
        "wait_ratio": 0.15,
        "overlap_ratio": 0.5,
    }


def test_waiting_is_unknown_where_a_rank_does_not_tell(analyser: Conversation) -> None:
    own = analyser.answer()
    assert analyser.ask(RANKS_QUESTION % (own, "null")) == "null"
    assert json.loads(analyser.ask('{"shortest": null}'))["wait_ratio"] is None


def test_it_goes_behind_what_trains_in_time_and_in_memory(analyser: Conversation) -> None:
    analyser.answer()
    pid = analyser._process.pid
    priority = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[16]
    assert int(priority) >= 10
    assert Path(f"/proc/{pid}/oom_score_adj").read_text().strip() == "1000"


def test_it_ends_with_the_rank(analyser: Conversation) -> None:
    analyser.answer()
    assert analyser._process.stdin is not None
    analyser._process.stdin.close()
    assert analyser._process.wait(60) == 0


@pytest.mark.parametrize("harm", [Path.unlink, lambda file: file.write_text("{")])
def test_a_trace_that_is_none_is_refused_with_a_sentence(trace: Path, harm: object) -> None:
    harm(trace)  # type: ignore[operator]
    with Conversation(trace, 1, None) as conversation:
        assert "rank0.json" in json.loads(conversation.answer())["error"]
        with pytest.raises(LostWindowError, match="ended with code 1"):
            conversation.answer()


def test_a_trace_that_cannot_be_kept_is_said_behind_the_figures(
    trace: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    with Conversation(trace, 1, tmp_path / "file" / "rank0.json.gz") as conversation:
        conversation.answer()
        assert "comm_ratio" in conversation.ask('{"shortest": null}')
        assert "cannot be written" in json.loads(conversation.answer())["error"]
