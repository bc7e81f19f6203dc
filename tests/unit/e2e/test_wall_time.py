"""What the end-to-end tests take for a fault of the phases."""

import pytest

from tests.e2e.wall_time import Told, Worker

CREATED_AT = 1_800_000_000.0


def wrongs(
    *,
    told: float | None,
    lived: float,
    last_words: float = 0.03,
    has_told_its_end: bool = True,
    was_killed: bool = False,
) -> list[str]:
    """Of a container that `lived` so many seconds and had told `told` `last_words` before."""
    started_at = CREATED_AT + 0.1
    worker = Worker(
        pod="job-a0-w0",
        has_entrypoint=True,
        created_at=CREATED_AT,
        started_at=started_at,
        finished_at=started_at + lived,
        has_told_its_end=has_told_its_end,
        was_killed=was_killed,
    )
    if told is not None:
        worker.told.add(Told(reported_at=started_at + lived - last_words, seconds=told))
    return list(worker.wrongs())


@pytest.mark.parametrize("was_killed", [False, True])
@pytest.mark.parametrize("lived", [2.0, 20.0, 2000.0])
def test_phases_that_go_on_to_the_end_are_right(lived: float, *, was_killed: bool) -> None:
    assert wrongs(told=lived - 0.03, lived=lived, was_killed=was_killed) == []
    assert wrongs(told=lived + 0.07, lived=lived, was_killed=was_killed) == []  # since its creation


@pytest.mark.parametrize("was_killed", [False, True])
def test_seconds_that_are_missing_at_the_end_are_a_fault(*, was_killed: bool) -> None:
    [wrong] = wrongs(told=19.5, lived=20.0, last_words=0.5, was_killed=was_killed)
    assert "at its end: 19.5 s" in wrong


def test_one_percent_of_a_long_attempt_may_be_missing() -> None:
    assert wrongs(told=1999.0, lived=2000.0, last_words=1.0) == []
    assert wrongs(told=1970.0, lived=2000.0, last_words=30.0)


def test_more_than_the_wall_time_is_a_fault() -> None:
    assert wrongs(told=20.15, lived=20.0)


def test_phases_that_are_wrong_when_they_are_told_are_a_fault() -> None:
    [wrong] = wrongs(told=10.0, lived=20.0, last_words=9.0, has_told_its_end=False)
    assert "at a report" in wrong


def test_only_a_rank_that_was_killed_may_tell_nothing() -> None:
    assert wrongs(told=None, lived=20.0) == ["job-a0-w0 has told no phases"]
    assert wrongs(told=None, lived=20.0, was_killed=True) == []
    assert wrongs(told=None, lived=20.0, has_told_its_end=False) == []
