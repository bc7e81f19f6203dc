"""Windows in real trainings of two ranks over gloo: what they say, and that they harm nothing."""

import json
import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kopeck.trace.files import trace_files
from kopeck.trace.rank_reader import read_rank
from kopeck.trace.window import shortest_ns, window_of
from kopeck_exporter.names import WINDOW_FAULTS
from tests.unit.exporter.exporter_process import environment, start
from tests.unit.exporter.reporting import Samples, get, samples_of
from tests.unit.trainer.local_workers import LocalJob
from tests.waiting import eventually

RANKS = 2
ENDLESS = 1_000_000
END_SECONDS = 300
PLANTED = ["none", "profiler", "truncated", "missing", "killed", "hung", "store_gone", "silent"]
COUNTED = {"profiler": [1, 2], "analyser": [3, 3], "hung": [1, 1], "unanswered": [2, 1]}
"""By rank. In the last window rank 1 has no profiler, and rank 0 no answer."""
BEGUN = re.compile(r"^rank (\d): (\w+) in the window after step (\d+)$", re.MULTILINE)


@dataclass
class Job(LocalJob):
    """One worker of two ranks, whose reports can be read."""

    processes_per_worker: int = RANKS
    reports: list[list[dict[str, Any]]] = field(default_factory=lambda: [[], []])
    """By rank, each new one that was seen."""

    @property
    def run_directory(self) -> Path:
        [found] = (self.folder / "tmp").glob("kopeck-*")
        return found

    def look(self) -> list[dict[str, Any]]:
        """The present reports of the ranks."""
        present = []
        for rank in range(RANKS):
            files = (self.folder / "tmp").glob(f"kopeck-*/rank-{rank}.json")
            present += [json.loads(file.read_text()) for file in files]
        assert len(present) == RANKS, self.workers[0].output
        return present

    def stop(self) -> int:
        self.workers[0].process.send_signal(signal.SIGTERM)
        return self.workers[0].exit_code()

    def begun(self) -> list[list[tuple[str, int]]]:
        """By rank the windows: what was planted, and the step before it."""
        found = BEGUN.findall(self.workers[0].output)
        return [
            [(fault, int(step)) for rank, fault, step in found if rank == str(each)]
            for each in range(RANKS)
        ]


def a_job(folder: Path, compile_cache: Path, **environ: str) -> Job:
    (folder / "tmp").mkdir()
    own = {"TORCHINDUCTOR_CACHE_DIR": str(compile_cache), "TMPDIR": str(folder / "tmp")}
    return Job(folder, {"OMP_NUM_THREADS": "1"} | own | environ)


def a_config(job: Job, parameters: dict[str, Any] | None = None, **training: Any) -> dict[str, Any]:
    defaults = {"steps": ENDLESS, "globalBatchSize": 4, "profile": {"everySeconds": 1}}
    config = job.config(entrypoint="windowed:build", **(defaults | training))
    del config["training"]["checkpoint"]
    return config | {"parameters": parameters or {}}


def has_windows(job: Job, count: int = 1) -> None:
    """Wait until each rank has so many windows begun, and figures of one."""

    def seen() -> None:
        assert all(len(each) >= count for each in job.begun()), job.workers[0].output
        assert all("comm_window" in report for report in job.look()), job.workers[0].output

    eventually(seen, seconds=END_SECONDS)


@dataclass
class Faulty:
    """A training in which window after window failed, and what was seen of it in the end."""

    job: Job
    reports: list[dict[str, Any]]
    samples: Samples
    exit_code: int
    steps_after_the_faults: int


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory, compile_cache: Path) -> Iterator[Faulty]:
    folder = tmp_path_factory.mktemp("windows")
    variables = environment(folder) | {"KOPECK_PROCESSES_PER_WORKER": str(RANKS)}
    job = a_job(folder, compile_cache, KOPECK_SOCKET=variables["KOPECK_SOCKET"])
    with start(variables) as exporter:
        assert exporter.stderr is not None
        port = int(exporter.stderr.readline().split()[3])
        try:
            job.start(a_config(job, {"faults": PLANTED}))
            yield _faulty(job, port)
        finally:
            job.kill_all()
            exporter.kill()


def _faulty(job: Job, port: int) -> Faulty:
    def all_counted() -> None:
        counts = [report.get("window_faults", {}) for report in job.look()]
        output = job.workers[0].output
        for fault, by_rank in COUNTED.items():
            assert [count.get(fault) for count in counts] == by_rank, (counts, output)

    def scraped() -> None:
        shown = samples_of(get(port, "/metrics").text)
        assert any(name == "kopeck_comm_wait_ratio" for name, _ in shown)
        assert fault_counts(shown) == {name: sum(COUNTED.get(name, [0])) for name in WINDOW_FAULTS}

    eventually(all_counted, seconds=END_SECONDS)
    last_step = job.begun()[0][len(PLANTED) - 1][1]
    has_windows(job, len(PLANTED) + 2)
    eventually(scraped, seconds=END_SECONDS)
    reports = job.look()
    return Faulty(
        job=job,
        reports=reports,
        samples=samples_of(get(port, "/metrics").text),
        exit_code=job.stop(),
        steps_after_the_faults=reports[0]["step"] - last_step,
    )


def fault_counts(samples: Samples) -> dict[str, float]:
    found = {}
    for (name, labels), value in samples.items():
        told = dict(labels)
        if name == "kopeck_exporter_errors_total" and told.get("source") == "window":
            found[told["reason"]] = value
    return found


def test_all_ranks_record_the_same_steps_whatever_fails_on_one(faulty: Faulty) -> None:
    first, second = faulty.job.begun()
    shared = min(len(first), len(second))
    assert shared >= len(PLANTED) + 2
    assert first[:shared] == second[:shared]


def test_training_goes_on_whatever_fails(faulty: Faulty) -> None:
    assert faulty.steps_after_the_faults > 0
    assert faulty.exit_code == 128 + signal.SIGTERM  # without a checkpoint to save


def test_each_fault_is_said_once_and_counted_each_time(faulty: Faulty) -> None:
    for rank in range(RANKS):
        said = re.findall(rf"rank {rank} has no trace window: (.+)", faulty.job.workers[0].output)
        assert len(said) == len(COUNTED), said
    assert "RuntimeError: CUPTI is taken" in faulty.job.workers[0].output


def test_a_window_after_those_that_failed_has_figures_again(faulty: Faulty) -> None:
    for report in faulty.reports:
        window = report["comm_window"]
        assert 0 < window["exposed_ratio"] <= window["comm_ratio"] < 1
        assert 0 <= window["overlap_ratio"] < 1
        assert 0 <= window["wait_ratio"] <= window["comm_ratio"]


def test_the_exporter_shows_the_mean_of_the_ranks(faulty: Faulty) -> None:
    shown = {name: value for (name, _), value in faulty.samples.items()}
    for name in ("kopeck_comm_ratio", "kopeck_comm_exposed_ratio", "kopeck_comm_wait_ratio"):
        assert 0 <= shown[name] < 1
    assert shown["kopeck_comm_window_timestamp_seconds"] > 1.7e9


def test_nothing_is_left_behind(faulty: Faulty) -> None:
    assert list((faulty.job.folder / "tmp").iterdir()) == []


def test_losses_and_samples_are_those_without_windows(tmp_path: Path, compile_cache: Path) -> None:
    ends = []
    for every_seconds in (0, 1):
        folder = tmp_path / str(every_seconds)
        folder.mkdir()
        job = a_job(folder, compile_cache)
        profile = {"everySeconds": every_seconds, "steps": 3}
        [exit_code] = job.run(a_config(job, steps=400, profile=profile))
        assert exit_code == 0, job.workers[0].output
        assert all(bool(each) == bool(every_seconds) for each in job.begun())
        ends.append(job.workers[0].termination())
    without, with_it = ends
    for figure in ("step", "samples", "loss"):
        assert with_it[figure] == without[figure]


def test_a_late_rank_is_what_the_other_one_waits_for_also_in_the_trace_that_is_kept(
    tmp_path: Path, compile_cache: Path
) -> None:
    late_seconds = 0.1
    job = a_job(tmp_path, compile_cache)
    kept = tmp_path / "kept" / "uid"
    profile = {"everySeconds": 1, "steps": 3, "keep": str(tmp_path / "kept")}
    job.start(a_config(job, {"lateSeconds": late_seconds}, profile=profile))

    def both_are_kept() -> None:
        names = sorted(file.name for file in kept.glob("*.json.gz"))
        assert names == ["rank0.json.gz", "rank1.json.gz"], job.workers[0].output

    try:
        has_windows(job)
        eventually(both_are_kept, seconds=END_SECONDS)
        waits = [report["comm_window"]["wait_ratio"] for report in job.look()]
        step_seconds = job.look()[0]["steady_step_seconds"]
        job.stop()
    finally:
        job.kill_all()
    # The rest of a step of the toy is milliseconds: the other rank waits for most of it.
    assert waits[0] > 0.5 * late_seconds / step_seconds
    assert waits[1] < 0.5 * waits[0]
    again = [window_of(read_rank(file), 3) for file in trace_files([kept], tmp_path)]
    shortest = shortest_ns([each.collectives for each in again])
    assert shortest is not None
    assert (again[0].wait_ns(shortest) or 0) > 3 * 0.5 * late_seconds * 1e9


def test_no_window_begins_where_a_checkpoint_would_be_in_it(
    tmp_path: Path, compile_cache: Path
) -> None:
    job = a_job(tmp_path, compile_cache)
    config = a_config(job, steps=120, parameters={"secondsPerSample": 0.01})
    config["training"]["checkpoint"] = {"path": str(tmp_path / "saved"), "everySteps": 20}
    [exit_code] = job.run(config)
    assert exit_code == 0, job.workers[0].output
    windows = job.begun()[0]
    assert windows, job.workers[0].output
    for _, step in windows:
        recorded = range(step + 1, step + 1 + 1 + 2)
        assert not any(each % 20 == 0 for each in recorded[:-1])
