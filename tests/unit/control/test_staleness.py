"""Lists show what the watches owe; a watch that does not pay is started again."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from kopeck.control.cache import Cache
from kopeck.control.dirty_queue import DirtyQueue
from kopeck.control.sync import RESYNC_SECONDS, Sync
from tests.builders import a_job_view, a_pod
from tests.unit.control.event_loop import run_simulated

PATIENCE_SECONDS = 60


def now() -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Lists:
    """A cluster that answers lists, and counts them."""

    pods: list[dict[str, Any]] = field(default_factory=list)
    jobs: list[dict[str, Any]] = field(default_factory=list)
    count: int = 0

    async def has_jobs(self) -> bool:
        return bool(self.jobs)

    async def all_jobs(self) -> tuple[list[dict[str, Any]], str]:
        self.count += 1
        return self.jobs, "1000"

    async def all_pods(self) -> AsyncIterator[tuple[list[dict[str, Any]], str]]:
        yield self.pods, "1000"


@dataclass
class Scene:
    """A Sync at work, its cluster, and how often it has started the watch again."""

    sync: Sync
    lists: Lists
    restarts: int = 0


def play(*acts: tuple[float, Callable[[Scene], object]]) -> Scene:
    """Sync after acts, each after so many seconds of simulated time."""

    async def main() -> Scene:
        lists = Lists()

        def restart() -> None:
            scene.restarts += 1

        sync = Sync(lists, Cache(), DirtyQueue(), now, restart)  # type: ignore[arg-type]
        scene = Scene(sync, lists)
        task = asyncio.create_task(sync.run())
        for seconds, act in acts:
            await asyncio.sleep(seconds)
            act(scene)
        task.cancel()
        return scene

    return run_simulated(main())


def look(scene: Scene) -> None:
    """Does nothing: the scene's time has passed."""


def pod_changes_unseen(scene: Scene) -> None:
    scene.lists.pods = [a_pod(resourceVersion="7")]


def watch_tells(scene: Scene) -> None:
    scene.sync.see_pod("MODIFIED", a_pod(resourceVersion="7"))


def pod_is_deleted_unseen(scene: Scene) -> None:
    scene.lists.pods = []


def relist(scene: Scene) -> None:
    scene.sync.see_pod(None, a_pod(worker=1, resourceVersion="5"))


def test_a_watch_that_owes_a_change_is_started_again_a_minute_after_the_list() -> None:
    waiting = play((1, pod_changes_unseen), (RESYNC_SECONDS + PATIENCE_SECONDS - 2, look))
    assert (waiting.restarts, waiting.sync.watch_owes_nothing()) == (0, False)
    given_up = play((1, pod_changes_unseen), (RESYNC_SECONDS + PATIENCE_SECONDS, look))
    assert (given_up.restarts, given_up.sync.watch_owes_nothing()) == (1, False)


def test_a_watch_that_tells_late_is_left_alone() -> None:
    scene = play(
        (1, pod_changes_unseen),
        (RESYNC_SECONDS + PATIENCE_SECONDS / 2, watch_tells),
        (RESYNC_SECONDS, look),
    )
    assert (scene.restarts, scene.sync.watch_owes_nothing()) == (0, True)


def test_a_watch_owes_nothing_of_what_is_deleted_since() -> None:
    scene = play(
        (1, pod_changes_unseen),
        (RESYNC_SECONDS, pod_is_deleted_unseen),
        (1, relist),
        (2 * PATIENCE_SECONDS, look),
    )
    assert (scene.restarts, scene.sync.watch_owes_nothing()) == (0, True)


def job_is_seen(scene: Scene) -> None:
    scene.lists.jobs = [a_job_view(status={}).manifest]
    scene.sync.see_job("ADDED", scene.lists.jobs[0])


def job_is_deleted_unseen(scene: Scene) -> None:
    scene.lists.jobs = []


def test_the_end_of_the_last_job_is_found_without_a_word_of_the_watch() -> None:
    there = play((1, job_is_seen), (RESYNC_SECONDS / 2, look))
    assert (there.lists.count, len(there.sync.known_uids())) == (0, 1)
    gone = play((1, job_is_seen), (1, job_is_deleted_unseen), (RESYNC_SECONDS / 2, look))
    assert (gone.lists.count, gone.sync.known_uids()) == (1, set())


def test_an_idle_cluster_asks_for_no_restart() -> None:
    scene = play((1, pod_changes_unseen), (1, watch_tells), (3 * RESYNC_SECONDS, look))
    assert (scene.restarts, scene.sync.watch_owes_nothing()) == (0, True)
