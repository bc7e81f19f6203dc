"""What the launcher adds to the last reports of ranks that have ended."""

import json
import socket
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from kopeck_exporter.names import PHASES
from kopeck_trainer.closing import LastReport, Moment, closed, tell_exporter

STARTED_AT = 100.0
NOW = Moment(unix_seconds=1_800_000_020.0, monotonic_seconds=120.0)


def report(**facts: Any) -> dict[str, Any]:
    """Eight seconds after the start of its container, so at 108."""
    return {
        "seq": 7,
        "time": 1_800_000_008.0,
        "step": 3,
        "phase": "compute",
        "phase_seconds": dict.fromkeys(PHASES, 0.0) | {"startup": 5.0, "compute": 3.0},
        "undecided_seconds": 0.0,
        **facts,
    }


def seconds(
    content: dict[str, Any], *, ended_at: float, archiving_seconds: float = 0.0
) -> dict[str, float]:
    last = LastReport(content=content, rank_ended_at=ended_at, archiving_seconds=archiving_seconds)
    phases: dict[str, float] = closed(last, STARTED_AT, NOW)["phase_seconds"]
    return {phase: each for phase, each in phases.items() if each}


def test_a_rank_that_was_killed_was_in_the_phase_that_it_told_last() -> None:
    told = report(phase="checkpoint")
    assert seconds(told, ended_at=109.5) == {
        "startup": 5.0,
        "compute": 3.0,
        "checkpoint": 1.5,
        "idle": 10.5,
    }


def test_what_nobody_can_decide_any_more_stays_with_the_phase_around_it() -> None:
    told = report(time=1_800_000_010.0, undecided_seconds=2.0)
    assert seconds(told, ended_at=110.0) == {"startup": 5.0, "compute": 5.0, "idle": 10.0}


def test_the_wait_for_the_compile_cache_is_compiling() -> None:
    told = report(phase="idle")
    assert seconds(told, ended_at=108.5, archiving_seconds=4.0) == {
        "startup": 5.0,
        "compute": 3.0,
        "compile": 4.0,
        "idle": 8.0,
    }


def test_ranks_that_told_last_at_different_times_are_as_old_at_the_end() -> None:
    early = report(phase="idle")
    late = report(phase="compute", time=1_800_000_018.0)
    late["phase_seconds"] = late["phase_seconds"] | {"compute": 13.0}
    for told, ended_at in ((early, 108.5), (late, 119.0)):
        assert sum(seconds(told, ended_at=ended_at).values()) == pytest.approx(20.0)


@pytest.mark.parametrize("set_by_seconds", [-3600.0, 3600.0])
def test_a_clock_that_was_set_meanwhile_makes_no_seconds(set_by_seconds: float) -> None:
    told = report(time=1_800_000_008.0 + set_by_seconds)
    phases = seconds(told, ended_at=109.0)
    assert 8.0 <= sum(phases.values()) <= 20.0
    assert min(phases.values()) >= 0.0


def test_all_else_stays_as_the_rank_told_it() -> None:
    last = LastReport(content=report(), rank_ended_at=109.0, archiving_seconds=0.0)
    content = closed(last, STARTED_AT, NOW)
    assert (content["seq"], content["time"], content["step"]) == (8, NOW.unix_seconds, 3)


def test_of_a_rank_that_told_nothing_nothing_is_told() -> None:
    last = LastReport(content={}, rank_ended_at=109.0, archiving_seconds=0.0)
    assert not closed(last, STARTED_AT, NOW)


def test_an_exporter_that_is_gone_or_hangs_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "node.sock"
    tell_exporter([report()], {"KOPECK_SOCKET": str(path)})
    with ExitStack() as open_sockets:
        hung = open_sockets.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        hung.bind(str(path))
        hung.listen(0)
        with suppress(BlockingIOError):
            while True:  # until as many wait as may
                waiting = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                open_sockets.enter_context(waiting).setblocking(False)  # noqa: FBT003
                waiting.connect(str(path))
        tell_exporter([report()] * 3, {"KOPECK_SOCKET": str(path)})


def test_each_rank_is_told_by_a_connection_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "node.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(str(path))
        listening.listen()
        tell_exporter([report(seq=1), {}, report(seq=2)], {"KOPECK_SOCKET": str(path)})
        for sequence in (1, 2):
            accepted, _ = listening.accept()
            with accepted:
                assert json.loads(accepted.recv(65536))["seq"] == sequence
                assert accepted.recv(1) == b""
