"""Steps and reports do not wait for each other."""

import json
import os
from pathlib import Path
from threading import Thread

from kopeck_trainer.reporter import Reporter
from tests.waiting import eventually


def steps(reporter: Reporter, number: int) -> None:
    for step in range(1, number + 1):
        reporter.step_ended(
            samples=4, step=step, job_samples=4 * step, seconds=0.01, loss=1.0, is_steady=True
        )


def test_no_step_waits_for_a_disk_that_stalls_and_all_are_told_once_it_goes_on(
    tmp_path: Path,
) -> None:
    disk = tmp_path / "rank-0.tmp"
    os.mkfifo(disk)  # a write to it waits for a reader
    reporter = Reporter({"KOPECK_RUN_DIR": str(tmp_path)})
    reporter.start()
    training = Thread(target=steps, args=(reporter, 100), daemon=True)
    training.start()
    training.join(30)
    assert not training.is_alive()
    disk.read_text()

    def all_are_told() -> None:
        told = tmp_path / "rank-0.json"
        assert told.is_file()  # no longer what stood for the disk
        assert json.loads(told.read_text())["samples"] == 400

    eventually(all_are_told)
