"""What /healthz says of a watch that does not tell; all on a simulated clock."""

import asyncio

from kopeck.control.dirty_queue import DirtyQueue
from kopeck.control.health import Health
from tests.unit.control.event_loop import run_simulated

PATIENCE_SECONDS = 120


def test_before_the_first_sync_nothing_is_said_of_the_watch() -> None:
    async def main() -> str | None:
        health = Health(DirtyQueue(), lambda: False)
        await asyncio.sleep(10 * PATIENCE_SECONDS)
        return health.what_is_wrong()

    assert run_simulated(main()) is None


def said_of_a_watch(*, sound_seconds: float, unsound_seconds: float, again: bool) -> str | None:
    async def main() -> str | None:
        sound = True
        health = Health(DirtyQueue(), lambda: sound)
        beat = asyncio.create_task(health.run())
        await asyncio.sleep(sound_seconds)
        sound = False
        await asyncio.sleep(unsound_seconds)
        sound = again
        await asyncio.sleep(2)
        beat.cancel()
        return health.what_is_wrong()

    return run_simulated(main())


def test_a_watch_that_is_down_for_two_minutes_is_wrong_until_it_tells_again() -> None:
    short = PATIENCE_SECONDS - 10
    long = PATIENCE_SECONDS + 10
    assert said_of_a_watch(sound_seconds=1000, unsound_seconds=short, again=False) is None
    wrong = said_of_a_watch(sound_seconds=1000, unsound_seconds=long, again=False)
    assert wrong is not None
    assert "watch has been down or behind" in wrong
    assert said_of_a_watch(sound_seconds=1000, unsound_seconds=long, again=True) is None
