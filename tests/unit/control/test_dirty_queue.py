"""Which job is worked on when, by how many workers; all on a simulated clock."""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopeck.api.job_key import JobKey
from kopeck.control.dirty_queue import DirtyQueue
from tests.unit.control.event_loop import START_SECONDS, run_simulated

LEAST_SECONDS_BETWEEN_PASSES = 0.15
CLOCK_ERROR_SECONDS = 1e-6


def a_key(name: str = "job") -> JobKey:
    return JobKey("default", name, f"uid-of-{name}")


@dataclass
class Passes:
    """What workers did: each pass with its start and end, in seconds since the beginning."""

    done: list[tuple[str, float, float]] = field(default_factory=list)
    at_work: set[str] = field(default_factory=set)

    def of(self, name: str = "job") -> list[float]:
        return [start for job, start, _ in self.done if job == name]


def seconds() -> float:
    return asyncio.get_running_loop().time() - START_SECONDS


async def worker(queue: DirtyQueue, passes: Passes, pass_seconds: float) -> None:
    while True:
        key = await queue.take()
        assert key.name not in passes.at_work, "two workers have the same job"
        passes.at_work.add(key.name)
        started = seconds()
        await asyncio.sleep(pass_seconds)
        passes.at_work.remove(key.name)
        passes.done.append((key.name, started, seconds()))
        queue.done(key)


def work_through(
    marks: Sequence[tuple[float, str, float]],
    *,
    workers: int = 1,
    pass_seconds: float = 0.0,
    for_seconds: float = 100.0,
) -> Passes:
    """The passes after marks of (when, which job, asked for in so many seconds)."""

    async def main() -> Passes:
        queue, passes = DirtyQueue(), Passes()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(worker(queue, passes, pass_seconds)) for _ in range(workers)]
            for when, name, after_seconds in sorted(marks):
                if when > seconds():
                    await asyncio.sleep(when - seconds())
                queue.mark(a_key(name), after_seconds)
            await asyncio.sleep(for_seconds - seconds())
            for task in tasks:
                task.cancel()
        return passes

    return run_simulated(main())


def test_the_first_mark_is_worked_on_at_once() -> None:
    assert work_through([(3.0, "job", 0.0)]).of() == pytest.approx([3.0])


def test_marks_of_one_moment_are_one_pass() -> None:
    assert len(work_through([(1.0, "job", 0.0)] * 50).of()) == 1


def test_a_burst_becomes_a_few_passes() -> None:
    burst = [(1.0 + number / 1000, "job", 0.0) for number in range(100)]
    assert work_through(burst).of() == pytest.approx([1.0, 1.15], abs=0.01)


def test_a_mark_during_a_pass_is_one_more_pass_after_it() -> None:
    marks = [(1.0, "job", 0.0), (2.0, "job", 0.0), (3.0, "job", 0.0)]
    passes = work_through(marks, workers=4, pass_seconds=10.0)
    assert len(passes.of()) == 2
    first_ended, second_started = passes.done[0][2], passes.done[1][1]
    assert second_started >= first_ended


def test_several_workers_work_on_several_jobs() -> None:
    marks = [(1.0, name, 0.0) for name in ("a", "b", "c")]
    passes = work_through(marks, workers=3, pass_seconds=5.0)
    assert {start for _, start, _ in passes.done} == {passes.done[0][1]}


def test_a_single_worker_takes_the_longest_due_first() -> None:
    marks = [(0.0, "slow", 0.0), (1.0, "late", 2.0), (2.0, "early", 0.0)]
    passes = work_through(marks, pass_seconds=10.0)
    assert [name for name, _, _ in passes.done] == ["slow", "early", "late"]


def test_a_mark_for_later_waits() -> None:
    assert work_through([(1.0, "job", 60.0)]).of() == pytest.approx([61.0])


@pytest.mark.parametrize("order", [(60.0, 5.0), (5.0, 60.0)])
def test_of_two_marks_the_sooner_wins_and_is_the_only_pass(order: tuple[float, float]) -> None:
    assert work_through([(0.0, "job", delay) for delay in order]).of() == pytest.approx([5.0])


def test_a_sooner_mark_wakes_a_worker_that_waits_for_a_later_one() -> None:
    marks = [(0.0, "later", 50.0), (1.0, "sooner", 0.0)]
    assert work_through(marks).of("sooner") == pytest.approx([1.0])


def test_a_job_that_is_worked_on_does_not_keep_others_waiting() -> None:
    marks = [(0.0, "slow", 0.0), (1.0, "slow", 0.0), (1.0, "quick", 0.0)]
    passes = work_through(marks, workers=2, pass_seconds=20.0)
    assert passes.of("quick") == pytest.approx([1.0])


def test_nothing_is_kept_of_jobs_that_ask_for_no_more_passes() -> None:
    gone = a_key("gone")
    known_elsewhere = sys.getrefcount(gone)

    async def main() -> None:
        queue = DirtyQueue()
        for key in (gone, a_key("other")):
            queue.mark(key)
            queue.done(await queue.take())
            await asyncio.sleep(LEAST_SECONDS_BETWEEN_PASSES + CLOCK_ERROR_SECONDS)
        del key
        assert sys.getrefcount(gone) == known_elsewhere

    run_simulated(main())


def test_depth_and_age_are_of_what_is_due_and_not_taken() -> None:
    async def main() -> None:
        queue = DirtyQueue()
        queue.mark(a_key("now"))
        queue.mark(a_key("later"), after_seconds=60.0)
        assert queue.depth == 1
        await asyncio.sleep(3.0)
        assert queue.oldest_age_seconds == pytest.approx(3.0)
        await queue.take()
        assert queue.depth == 0
        assert queue.oldest_age_seconds <= 0.0

    run_simulated(main())


many_marks = st.lists(
    st.tuples(
        st.floats(0, 5), st.sampled_from(["a", "b", "c"]), st.sampled_from([0.0, 0.1, 3.0, 20.0])
    ),
    max_size=30,
)


@given(many_marks, st.integers(1, 4), st.sampled_from([0.0, 0.05, 2.0]))
def test_every_mark_is_followed_by_a_pass_and_no_job_is_passed_over_too_often(
    marks: list[tuple[float, str, float]], workers: int, pass_seconds: float
) -> None:
    passes = work_through(marks, workers=workers, pass_seconds=pass_seconds)
    for when, name, _ in marks:
        assert any(start >= when - CLOCK_ERROR_SECONDS for start in passes.of(name))
    for name in {name for _, name, _ in marks}:
        spans = [(start, end) for job, start, end in passes.done if job == name]
        for (_, ended), (started, _) in pairwise(spans):
            assert started - ended >= LEAST_SECONDS_BETWEEN_PASSES - CLOCK_ERROR_SECONDS
        assert len(spans) <= sum(name == job for _, job, _ in marks)
