"""The library for programs with a loop of their own, in processes as users start them."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from time import monotonic
from typing import Any

from tests.unit.exporter.exporter_process import running_exporter
from tests.unit.exporter.reporting import get, samples_of

LOOP = """
import sys
from kopeck_trainer import report
for loss in (3.0, 2.5, float("nan")):
    report.step(samples=4, loss=loss)
    with report.phase("checkpoint"):
        pass
assert "torch" not in sys.modules
"""

ONE_STEP = "from kopeck_trainer import report; report.step(samples=1)"


def run(program: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | environ,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )


def last_report(folder: Path, local_rank: int) -> dict[str, Any]:
    content = json.loads((folder / f"rank-{local_rank}.json").read_text())
    assert isinstance(content, dict)
    return content


def test_outside_kopeck_nothing_can_be_seen() -> None:
    result = run(LOOP)
    assert (result.stdout, result.stderr) == ("", "")


def test_steps_and_phases_are_counted_for_the_process_and_the_job(tmp_path: Path) -> None:
    run(LOOP, KOPECK_RUN_DIR=str(tmp_path), RANK="3", LOCAL_RANK="1", WORLD_SIZE="4")
    report = last_report(tmp_path, local_rank=1)
    assert (report["rank"], report["local_rank"], report["world_size"]) == (3, 1, 4)
    assert (report["step"], report["samples"], report["job_samples"]) == (3, 12, 48)
    assert sum(report["step_bucket_counts"]) == 3
    assert "loss" not in report  # JSON knows no NaN
    assert "compile_seconds" not in report


def test_the_first_step_holds_the_start_up_and_is_not_steady(tmp_path: Path) -> None:
    run(ONE_STEP, KOPECK_RUN_DIR=str(tmp_path))
    assert "steady_step_seconds" not in last_report(tmp_path, local_rank=0)
    run(f"{ONE_STEP}; report.step(samples=1)", KOPECK_RUN_DIR=str(tmp_path))
    assert "steady_step_seconds" in last_report(tmp_path, local_rank=0)


def test_the_most_memory_that_a_process_had_is_reported(tmp_path: Path) -> None:
    program = """
from kopeck_trainer import report
ones = bytearray(b"1" * 200_000_000)
del ones
report.step(samples=1)
"""
    larger = bytearray(b"1" * 1_000_000_000)  # the parent's own memory does not count
    run(program, KOPECK_RUN_DIR=str(tmp_path))
    del larger
    assert 200_000_000 < last_report(tmp_path, local_rank=0)["peak_resident_bytes"] < 10**9


def test_phase_seconds_are_the_wall_time_of_the_process(tmp_path: Path) -> None:
    program = """
import time
from kopeck_trainer import report
from kopeck_trainer.reporter import process_reporter
report.step(samples=1)
started = time.monotonic()
before = sum(process_reporter().clock.seconds().values())
with report.phase("data_wait"):
    time.sleep(0.2)
after = process_reporter().clock.seconds()
print(after["data_wait"], sum(after.values()) - before - (time.monotonic() - started))
"""
    waited, difference = map(float, run(program, KOPECK_RUN_DIR=str(tmp_path)).stdout.split())
    assert waited >= 0.2
    assert abs(difference) < 0.05


def test_tokens_are_counted_once_a_step_tells_them(tmp_path: Path) -> None:
    run(ONE_STEP, KOPECK_RUN_DIR=str(tmp_path))
    assert "tokens" not in last_report(tmp_path, local_rank=0)
    steps = f"{ONE_STEP}; report.step(samples=1, tokens=512); report.step(samples=2, tokens=700)"
    run(steps, KOPECK_RUN_DIR=str(tmp_path))
    assert last_report(tmp_path, local_rank=0)["tokens"] == 1212


def test_time_since_the_container_started_is_start_up(tmp_path: Path) -> None:
    started_at = monotonic() - 1000
    run(ONE_STEP, KOPECK_RUN_DIR=str(tmp_path), KOPECK_STARTED_AT=str(started_at))
    told = last_report(tmp_path, local_rank=0)
    assert 1000 <= told["phase_seconds"]["startup"] <= monotonic() - started_at


def test_processes_of_a_rank_that_follow_each_other_count_no_time_twice(tmp_path: Path) -> None:
    started_at = monotonic() - 1000
    told = []
    for _ in range(3):
        run(ONE_STEP, KOPECK_RUN_DIR=str(tmp_path), KOPECK_STARTED_AT=str(started_at))
        told.append(last_report(tmp_path, local_rank=0))
    seconds = sum(sum(each["phase_seconds"].values()) for each in told)
    since_start = monotonic() - started_at - (time.time() - told[-1]["time"])
    assert abs(seconds - since_start) < 1  # twice would be a thousand


def test_a_program_that_ends_tells_its_last_seconds(tmp_path: Path) -> None:
    program = f"{ONE_STEP}; import time; time.sleep(0.5)"
    run(program, KOPECK_RUN_DIR=str(tmp_path))
    told = last_report(tmp_path, local_rank=0)
    assert told["phase_seconds"]["compute"] >= 0.5
    assert told["step_idle_seconds"] >= 0.5


def test_of_steps_in_bursts_faster_than_any_exporter_reads_none_is_lost(tmp_path: Path) -> None:
    program = """
from time import sleep
from kopeck_trainer import report
for burst in range(4):
    for step in range(300):
        report.step(samples=3)
    sleep(0.5)
for step in range(300):
    report.step(samples=3)
"""
    with running_exporter(tmp_path) as exporter:
        run(program, KOPECK_SOCKET=str(exporter.socket), KOPECK_RUN_DIR=str(tmp_path))
        exporter.expect_samples(4500)
        shown = samples_of(get(exporter.port, "/metrics").text)
    assert shown["kopeck_steps_total", frozenset()] == 1500
    dropped = frozenset({("source", "socket"), ("reason", "dropped")})
    assert shown["kopeck_exporter_errors_total", dropped] == 0
    told = last_report(tmp_path, local_rank=0)
    assert (told["step"], told["samples"]) == (1500, 4500)
    assert told["seq"] < 300, "a report tells of many steps"


def test_the_last_steps_before_a_pause_are_told_without_waiting_for_the_next(
    tmp_path: Path,
) -> None:
    program = """
import json
from kopeck_trainer import report
from kopeck_trainer.reporter import process_reporter
from kopeck_trainer.run_directory import read_json
from tests.waiting import eventually
for step in range(5):
    report.step(samples=1)
def all_told():
    assert read_json(process_reporter()._file).get("samples") == 5
eventually(all_told)
"""
    run(program, KOPECK_RUN_DIR=str(tmp_path))


def test_a_process_that_a_loop_forks_and_that_ends_says_nothing(tmp_path: Path) -> None:
    program = """
import os, sys
from kopeck_trainer import report
from kopeck_trainer.reporter import process_reporter
report.step(samples=1)
process_reporter().send()
child = os.fork()
if child == 0:
    sys.exit()
os.waitpid(child, 0)
print(process_reporter()._file.read_text())
"""
    told = json.loads(run(program, KOPECK_RUN_DIR=str(tmp_path)).stdout)
    assert (told["samples"], told["phase"]) == (1, "compute")


def test_a_loop_that_resumed_counts_the_steps_before(tmp_path: Path) -> None:
    program = """
from kopeck_trainer import report
from kopeck_trainer.loop_reports import loop_reports
loop_reports().resumed(10)
report.step(samples=4)
report.step(samples=2)
"""
    run(program, KOPECK_RUN_DIR=str(tmp_path))
    told = last_report(tmp_path, local_rank=0)
    assert (told["step"], told["job_samples"], told["samples"]) == (12, 46, 6)
