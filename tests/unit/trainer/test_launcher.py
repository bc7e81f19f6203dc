"""The launcher with programs of the user's own: real processes, no torch."""

import os
import signal
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kopeck_trainer.launcher import BRIEF_PROFILING, QUIET_AUTOTUNING, environment_of_ranks
from tests.unit.exporter.reporting import running_sidecar
from tests.unit.trainer.local_workers import LocalJob, Worker
from tests.waiting import eventually

ROUNDED_SECONDS = 0.02  # the kernel tells the start of a process in hundredths of a second


def shell(script: str) -> dict[str, Any]:
    return {"command": ["sh", "-c"], "args": [script]}


def says(worker: Worker, text: str) -> None:
    def check() -> None:
        assert text in worker.output

    eventually(check)


@pytest.mark.parametrize(
    ("script", "code", "failure"),
    [
        ("exit 0", 0, None),
        ("exit 3", 3, {"rank": 0, "exitCode": 3}),
        ("kill -SEGV $$", 139, {"rank": 0, "exitCode": 139, "signal": "SIGSEGV"}),
        ("kill -KILL $$", 137, {"rank": 0, "exitCode": 137, "signal": "SIGKILL"}),
    ],
)
def test_the_exit_code_is_that_of_the_rank(
    job: LocalJob, script: str, code: int, failure: object
) -> None:
    assert job.run(shell(script)) == [code]
    assert job.workers[0].termination().get("firstFailure") == failure


def test_ranks_get_what_torchrun_would_set(job: LocalJob) -> None:
    names = "RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE GROUP_RANK MASTER_ADDR TORCHELASTIC_RUN_ID"
    assert job.run(shell(f'for name in {names}; do printenv $name; done; env | grep -c "^PET_"; :'))
    assert job.workers[0].output.split()[:8] == ["0", "0", "1", "1", "0", "127.0.0.1", "uid-0", "0"]


def test_phases_begin_with_the_container_and_are_in_the_termination_message(job: LocalJob) -> None:
    program = (
        "import time; time.sleep(1); from kopeck_trainer import report; report.step(samples=1)"
    )
    before = time.time()
    [worker] = job.start({"command": [sys.executable, "-c", program]})
    after = time.time()
    assert worker.exit_code() == 0
    told = worker.termination()
    assert told["phaseSeconds"]["startup"] > 1
    assert began_between(told, before, after)


def test_phases_go_on_until_the_launcher_leaves_and_the_exporter_is_told_the_same(
    job: LocalJob,
) -> None:
    job.processes_per_worker = 2
    ended = job.folder / "ended"
    step = "from kopeck_trainer import report; report.step(samples=1)"
    with running_sidecar(job.folder, processes=2) as sidecar:
        job.environ["KOPECK_SOCKET"] = str(sidecar.socket)
        before = time.time()
        [worker] = job.start(shell(f"{sys.executable} -c '{step}'; date +%s.%N > {ended}-$RANK"))
        after = time.time()
        assert worker.exit_code() == 0, worker.output
        told = worker.termination()
        ends = [float(Path(f"{ended}-{rank}").read_text()) for rank in range(2)]
        assert max(ends) <= told["reportedAt"] <= time.time()
        assert began_between(told, before, after)

        def exporter_has_the_same() -> None:
            progress = sidecar.progress()
            assert progress["reportedAt"] == told["reportedAt"]
            exported = {name: each for name, each in progress["phaseSeconds"].items() if each}
            assert exported == told["phaseSeconds"]

        eventually(exporter_has_the_same)


def test_a_rank_that_is_killed_was_in_its_phase_until_then(job: LocalJob) -> None:
    program = """
import signal, time
from kopeck_trainer import report
from kopeck_trainer.reporter import process_reporter
report.step(samples=1)
with report.phase("data_wait"):
    process_reporter().send()
    print("waits since", time.time(), flush=True)
    signal.pause()
"""
    before = time.time()
    [worker] = job.start({"command": [sys.executable, "-c", program]})
    after = time.time()
    says(worker, "waits since")
    waits_since = float(worker.output.split()[2])
    killed_at = time.time()
    os.kill(worker.rank_pids[0], signal.SIGKILL)
    assert worker.exit_code() == 137
    told = worker.termination()
    assert told["reportedAt"] >= killed_at
    assert told["phaseSeconds"]["data_wait"] >= killed_at - waits_since
    assert began_between(told, before, after)


def began_between(told: dict[str, Any], before: float, after: float) -> bool:
    """What a termination message tells adds up to the life of its container until then."""
    began_at: float = told["reportedAt"] - sum(told["phaseSeconds"].values())
    return before - ROUNDED_SECONDS <= began_at <= after + ROUNDED_SECONDS


def test_one_failed_rank_ends_its_peers_with_what_they_started(job: LocalJob) -> None:
    children = [job.folder / f"child-of-{rank}" for rank in (0, 1, 3)]
    all_told = " && ".join(f"[ -e {child} ]" for child in children)
    failing = f"until {all_told}; do sleep 0.05; done; exit 5"
    own = f"{job.folder}/child-of-$RANK"
    other = f"sleep 1000 & echo $! > {own}.part; mv {own}.part {own}; wait"
    job.processes_per_worker = 4
    assert job.run(shell(f'if [ "$RANK" = 2 ]; then {failing}; else {other}; fi')) == [5]
    assert job.workers[0].termination()["firstFailure"] == {"rank": 2, "exitCode": 5}
    for child in children:
        eventually(partial(is_gone, int(child.read_text())))


def is_gone(pid: int) -> None:
    stat = Path(f"/proc/{pid}/stat")
    assert not stat.exists() or stat.read_text().split()[2] == "Z"


def test_sigterm_is_forwarded_once_and_ranks_have_time_to_leave(job: LocalJob) -> None:
    script = "trap 'echo asked; sleep 0.5; exit 143' TERM; echo ready; while :; do sleep 0.1; done"
    [worker] = job.start(shell(script))
    says(worker, "ready")
    worker.process.send_signal(signal.SIGTERM)
    says(worker, "asked")
    worker.process.send_signal(signal.SIGTERM)
    assert worker.exit_code() == 143
    assert worker.output.count("asked") == 1
    assert worker.termination()["exitClass"] == "checkpointed"


def test_a_rank_that_ignores_sigterm_is_killed_when_the_grace_is_over(job: LocalJob) -> None:
    job.environ["KOPECK_GRACE_SECONDS"] = "11"  # one second, and the margin of ten
    [worker] = job.start(shell("trap 'echo no' TERM; echo ready; while :; do sleep 0.1; done"))
    says(worker, "ready")
    worker.process.send_signal(signal.SIGTERM)
    assert worker.exit_code() == 137
    assert worker.termination()["exitClass"] == "failed"


def test_a_program_that_does_not_exist_is_a_configuration_error(job: LocalJob) -> None:
    assert job.run({"command": ["/no/such/program"]}) == [78]
    assert job.workers[0].termination()["message"] == (
        "spec.command: /no/such/program cannot be started (No such file or directory); "
        "name a program that the image has"
    )


def test_a_configuration_that_cannot_be_read_is_a_configuration_error(job: LocalJob) -> None:
    assert job.run({"command": ["true"], "training": {"steps": 1}}) == [78]
    assert job.workers[0].termination()["exitClass"] == "configuration"


def test_a_world_size_that_does_not_divide_is_refused_by_every_worker_at_once(
    job: LocalJob,
) -> None:
    assert job.run(job.config(globalBatchSize=9), workers=2) == [78, 78]
    sentence = "spec.training.globalBatchSize: 9 is no multiple of microBatchSize × ranks (2 × 2)"
    assert job.workers[1].termination()["message"] == f"{sentence}; use 12"


def test_a_worker_that_never_finds_worker_0_leaves_with_a_code_of_its_own(job: LocalJob) -> None:
    job.environ["KOPECK_RENDEZVOUS_SECONDS"] = "1"
    _, lonely = job.start(shell("sleep 3"), workers=2)  # worker 0 opens no port
    assert lonely.exit_code() == 180
    assert lonely.termination()["exitClass"] == "rendezvous"
    assert "does not answer" in lonely.termination()["message"]


def test_a_stop_ends_the_wait_for_worker_0(job: LocalJob) -> None:
    _, waiting = job.start(shell("sleep 1"), workers=2)
    says(waiting, "waiting for worker 0")
    waiting.process.send_signal(signal.SIGTERM)
    assert waiting.exit_code() == 143
    assert "while waiting for worker 0" in waiting.termination()["message"]


def test_what_the_pod_sets_wins_over_the_defaults_for_ranks() -> None:
    assert environment_of_ranks({"HOME": "/home/me"}, 1)["HOME"] == "/home/me"
    defaults = environment_of_ranks({}, processes=1000)
    assert defaults == {
        "HOME": "/tmp",  # noqa: S108
        "USER": "kopeck",
        "TORCHINDUCTOR_CACHE_DIR": "/tmp/inductor",  # noqa: S108
        "OMP_NUM_THREADS": "1",
        **QUIET_AUTOTUNING,
        **BRIEF_PROFILING,
    }
    assert defaults["TEARDOWN_CUPTI"] == "1"
