"""When a real rank saves: as time passes, as it is asked; and when it may not any more."""

import os
import signal
from pathlib import Path

import pytest

from kopeck_trainer.checkpoint.fence import inside_fence
from kopeck_trainer.exit_codes import FAILED
from tests.unit.trainer.rank_process import END_SECONDS, start_rank
from tests.waiting import eventually

ENDLESS = 1_000_000


def checkpoint_steps(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "uid").glob("step-*"))


def test_time_alone_is_a_reason_to_save(tmp_path: Path) -> None:
    rank = start_rank(
        tmp_path, steps=ENDLESS, checkpoint={"path": str(tmp_path), "everySeconds": 1}
    )

    def saved_twice() -> None:
        assert rank.output.count("saved a checkpoint") >= 2

    eventually(saved_twice, seconds=END_SECONDS)
    assert rank.report["step"] > 10  # not at every step
    rank.process.kill()


@pytest.mark.parametrize("in_background", [False, True])
def test_a_request_of_the_operator_is_answered_in_the_report(
    tmp_path: Path, *, in_background: bool
) -> None:
    annotations = tmp_path / "annotations"
    rank = start_rank(
        tmp_path,
        steps=ENDLESS,
        checkpoint={"path": str(tmp_path), "everySeconds": 1000, "async": in_background},
        environ={"KOPECK_PODINFO": str(annotations)},
    )
    rank.step_reached(3)
    assert checkpoint_steps(tmp_path) == []
    annotations.write_text('kopeck.dev/checkpoint-request="resize-7"\n')

    def is_answered() -> None:
        assert rank.report.get("checkpoint_request") == "resize-7"

    eventually(is_answered, seconds=END_SECONDS)
    [name] = checkpoint_steps(tmp_path)
    assert name == f"step-{rank.report['checkpoint_step']}.a0"
    rank.process.kill()


def pause(pid: int, folder: Path) -> None:
    """Stop it, but not while it has the fence, for which a newer attempt would wait."""

    def is_stopped() -> None:
        states = [stat.read_text().rpartition(")")[2].split()[0] for stat in tasks.glob("*/stat")]
        assert set(states) == {"T"}

    tasks = Path(f"/proc/{pid}/task")
    with inside_fence(folder, attempt=0):
        os.kill(pid, signal.SIGSTOP)
        eventually(is_stopped)


@pytest.mark.parametrize("in_background", [False, True])
def test_a_paused_rank_of_an_older_attempt_cannot_save_when_it_wakes(
    tmp_path: Path, *, in_background: bool
) -> None:
    checkpoint = {"path": str(tmp_path), "everySteps": 2, "async": in_background}
    old = start_rank(tmp_path, steps=ENDLESS, checkpoint=checkpoint)
    old.step_reached(4)
    pause(old.process.pid or 0, tmp_path / "uid")
    new = start_rank(tmp_path, attempt=1, steps=ENDLESS, checkpoint=checkpoint)
    new.step_reached(old.report["step"] + 4)
    new.process.terminate()
    assert new.exit_code() == 143, new.output
    kept = checkpoint_steps(tmp_path)
    os.kill(old.process.pid or 0, signal.SIGCONT)
    assert old.exit_code() == FAILED, old.output
    assert [name for name in checkpoint_steps(tmp_path) if not name.endswith(".tmp")] == kept
