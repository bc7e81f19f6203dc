"""What is asked for is worked on, whatever comes in between; all on a simulated clock."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Histogram

from kopeck.api.job_key import JobKey
from kopeck.control.cache import Cache
from kopeck.control.dirty_queue import DirtyQueue
from kopeck.control.workers import Workers
from kopeck.kube.errors import AlreadyExistsError, ConflictError, NotFoundError
from tests.builders import JOB_UID, a_job_view
from tests.unit.control.event_loop import START_SECONDS, run_simulated

JOB = JobKey("default", "job", JOB_UID)
PASS_SECONDS = 1.0


@dataclass
class AtWork:
    """Workers, and the passes that they made: when each began, in seconds since the start."""

    queue: DirtyQueue = field(default_factory=DirtyQueue)
    cache: Cache = field(default_factory=Cache)
    read: list[JobKey] = field(default_factory=list)
    passes: list[tuple[str, float]] = field(default_factory=list)
    outcomes: list[float | Exception | None] = field(default_factory=list)
    """Of the passes, one after the other; those after them ask for nothing."""

    async def reconcile(self, key: JobKey) -> float | None:
        self.passes.append((key.name, asyncio.get_running_loop().time() - START_SECONDS))
        await asyncio.sleep(PASS_SECONDS)
        outcome = self.outcomes.pop(0) if self.outcomes else None
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def read_job(self, key: JobKey) -> dict[str, Any]:
        self.read.append(key)
        manifest = dict(a_job_view().manifest)
        return manifest | {"metadata": manifest["metadata"] | {"resourceVersion": "9"}}

    def during(self, work: Callable[[], Awaitable[None]]) -> "AtWork":
        """After the workers worked through what came meanwhile, and for long after it."""

        async def main() -> None:
            seconds = Histogram("pass_seconds", "Of passes.", registry=CollectorRegistry())
            workers = Workers(self.reconcile, self.read_job, self.queue, self.cache, seconds)
            running = asyncio.create_task(workers.run())
            await work()
            await asyncio.sleep(600)
            assert not running.done()
            running.cancel()

        run_simulated(main())
        return self

    def after_one_mark(self) -> "AtWork":
        async def mark() -> None:
            self.queue.mark(JOB)

        return self.during(mark)

    @property
    def begun_at(self) -> list[float]:
        return [begun_at for _, begun_at in self.passes]


def test_a_mark_during_the_pass_of_a_job_that_is_gone_is_one_more_pass() -> None:
    """As when its second pod goes while the ledger is written for the first."""
    at_work = AtWork()

    async def two_pods_go() -> None:
        at_work.queue.mark(JOB)
        await asyncio.sleep(PASS_SECONDS / 2)
        at_work.queue.mark(JOB)

    assert len(at_work.during(two_pods_go).passes) == 2


def test_a_pass_that_asks_for_nothing_is_the_last() -> None:
    assert len(AtWork().after_one_mark().passes) == 1


def test_a_pass_that_asks_for_another_gets_it_so_much_later() -> None:
    first, second = AtWork(outcomes=[60.0]).after_one_mark().begun_at
    assert second == pytest.approx(first + PASS_SECONDS + 60)


def test_a_pass_that_fails_is_repeated_later_and_later_until_it_succeeds() -> None:
    failures = [OSError("no route"), NotFoundError(404, "NotFound", ""), KeyError("ours")]
    begun_at = AtWork(outcomes=[*failures]).after_one_mark().begun_at
    waits = [later - sooner - PASS_SECONDS for sooner, later in pairwise(begun_at)]
    assert waits == pytest.approx([1.0, 2.0, 4.0])


def test_one_success_makes_the_next_failure_the_first() -> None:
    outcomes = [OSError(), OSError(), 5.0, OSError()]
    begun_at = AtWork(outcomes=[*outcomes]).after_one_mark().begun_at
    assert begun_at[4] - begun_at[3] == pytest.approx(PASS_SECONDS + 1.0)


def test_a_job_that_fails_does_not_keep_others_waiting() -> None:
    at_work = AtWork(outcomes=[OSError()] * 3)

    async def two_jobs() -> None:
        at_work.queue.mark(JOB)
        await asyncio.sleep(PASS_SECONDS * 1.5)
        at_work.queue.mark(JobKey("default", "other", "other-uid"))

    assert at_work.during(two_jobs).passes[1] == ("other", pytest.approx(PASS_SECONDS * 1.5))


@pytest.mark.parametrize("error", [ConflictError, AlreadyExistsError])
def test_another_writer_was_first_so_the_job_is_read_and_planned_again_soon(
    error: type[ConflictError | AlreadyExistsError],
) -> None:
    at_work = AtWork(outcomes=[error(409, "Conflict", "")]).after_one_mark()
    assert at_work.read == [JOB]
    known = at_work.cache.job(JOB)
    assert known is not None
    assert known.resource_version == "9"
    first, second = at_work.begun_at
    assert second - first < PASS_SECONDS * 2
