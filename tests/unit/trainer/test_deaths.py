"""How a rank dies, what it is called, and what is lost with it."""

import signal
from pathlib import Path
from typing import Any

import pytest

from kopeck_trainer.exit_codes import CHECKPOINTED, CONFIGURATION, FAILED, RENDEZVOUS, exit_class
from tests.unit.trainer.rank_process import END_SECONDS, kept_steps, start_rank
from tests.waiting import eventually

ENDLESS = 1_000_000


@pytest.mark.parametrize(
    ("phase", "kept"),
    [
        ("startup", 4),
        ("compile", 4),
        ("forward", 6),
        ("backward", 6),
        ("optimizer", 6),
        ("checkpoint", 6),
    ],
)
@pytest.mark.parametrize("in_background", [False, True])
def test_a_kill_in_any_phase_loses_no_more_than_the_work_since_the_last_checkpoint(
    tmp_path: Path, phase: str, kept: int, *, in_background: bool
) -> None:
    checkpoint = {"path": str(tmp_path), "everySteps": 2, "async": in_background}
    common: dict[str, Any] = {"entrypoint": "dying:build", "checkpoint": checkpoint}
    whole = start_rank(tmp_path, steps=4, parameters={"dieIn": "never"}, **common)
    assert whole.exit_code() == 0, whole.output
    mode = "default" if phase == "compile" else "off"
    killed = start_rank(
        tmp_path,
        attempt=1,
        steps=ENDLESS,
        compile={"mode": mode},
        parameters={"dieIn": phase},
        **common,
    )
    assert killed.exit_code() == 128 + signal.SIGKILL, killed.output
    resumed = start_rank(
        tmp_path,
        attempt=2,
        steps=8,
        parameters={"dieIn": "never"},
        **common,
    )
    assert resumed.exit_code() == 0, resumed.output
    # In the background the one that was due two steps before may not have been over.
    least = kept - 2 if in_background and kept > 4 else kept
    [line] = [line for line in resumed.output.splitlines() if "resumed" in line]
    assert least <= int(line.split()[3].rstrip(",")) <= kept
    assert kept_steps(tmp_path)[-1] == 8


@pytest.mark.parametrize(
    ("by", "code", "reason"),
    [
        ("ValueError", FAILED, "ValueError: as asked"),
        ("MemoryError", FAILED, "MemoryError: as asked"),
        ("SIGSEGV", 128 + signal.SIGSEGV, None),
        ("SIGKILL", 128 + signal.SIGKILL, None),
    ],
)
def test_the_code_and_the_reason_say_how_a_rank_died(
    tmp_path: Path, by: str, code: int, reason: str | None
) -> None:
    dying = start_rank(
        tmp_path,
        steps=ENDLESS,
        entrypoint="dying:build",
        parameters={"dieIn": "forward", "by": by},
    )
    assert dying.exit_code() == code, dying.output
    assert exit_class(code) == "failed"
    if reason:
        assert dying.reason == reason


def test_a_field_that_cannot_work_is_a_configuration_error(tmp_path: Path) -> None:
    refused = start_rank(tmp_path, steps=4, globalBatchSize=3)
    assert refused.exit_code() == CONFIGURATION
    assert refused.reason.startswith("spec.training.globalBatchSize: 3 is no multiple")


def test_a_peer_that_never_comes_is_a_rendezvous_error_that_names_it(tmp_path: Path) -> None:
    lonely = {"WORLD_SIZE": "2", "KOPECK_RENDEZVOUS_SECONDS": "1"}
    waiting = start_rank(tmp_path, steps=4, globalBatchSize=4, environ=lonely)
    assert waiting.exit_code() == RENDEZVOUS, waiting.output
    assert waiting.reason == "rank 1 did not come in 1 s"


def test_a_stop_with_a_checkpoint_is_a_clean_one(tmp_path: Path) -> None:
    stopped = start_rank(tmp_path, steps=ENDLESS)
    stopped.step_reached(3)
    stopped.process.terminate()
    assert stopped.exit_code() == CHECKPOINTED, stopped.output
    assert kept_steps(tmp_path)[-1] == stopped.report["step"]


def test_a_stop_without_checkpoints_is_what_it_is_for_any_program(tmp_path: Path) -> None:
    stopped = start_rank(tmp_path, steps=ENDLESS, checkpoint=None)
    stopped.step_reached(1)
    stopped.process.terminate()
    stopped.process.join(END_SECONDS)
    assert stopped.process.exitcode == -signal.SIGTERM
    assert "spec.training.checkpoint is unset" in stopped.reason


def test_a_stop_before_anything_is_worth_saving_ends_a_rank_at_once(tmp_path: Path) -> None:
    lonely = start_rank(tmp_path, steps=4, globalBatchSize=4, environ={"WORLD_SIZE": "2"})

    def has_started() -> None:
        assert lonely.report

    eventually(has_started)
    lonely.process.terminate()
    assert lonely.exit_code() == 128 + signal.SIGTERM
