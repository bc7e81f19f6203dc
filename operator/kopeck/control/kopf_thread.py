"""kopf in a thread with an event loop of its own, from its start to its exit or to our leaving it.

At its exit kopf cancels every task of its loop that is younger than itself; here those are only
its own. That exit has no bound: after HTTP 401 its watchers wait for credentials that no task will
bring any more, and the callback that should cancel them fails. What has begun to exit and does not
end is cancelled, and what cannot be cancelled is left behind with its thread.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress

import kopf

_EXIT_SECONDS = 10.0
_CANCEL_SHARE = 0.5


class KopfHungError(Exception):
    """kopf did not exit in time."""


async def run_kopf(
    registry: kopf.OperatorRegistry,
    settings: kopf.OperatorSettings,
    stop: threading.Event,
    exit_seconds: float = _EXIT_SECONDS,
) -> None:
    """Run kopf until `stop` is set or it exits. Raises what ended it, or KopfHungError.

    Cancelling this ends kopf. `stop` is set when this returns: what comes later is not to be heard.
    kopf has `exit_seconds` to exit, and half of that again once it is cancelled.
    """
    loop = asyncio.get_running_loop()
    exiting, ended = loop.create_future(), loop.create_future()

    def tell(future: asyncio.Future[None], error: BaseException | None = None) -> None:
        # The loop is closed when a thread that was left behind ends after all.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_settle, future, error)

    def tell_exiting() -> None:
        tell(exiting)

    def live() -> None:
        try:
            asyncio.run(_live_and_exit(registry, settings, stop, exit_seconds, tell_exiting))
        except asyncio.CancelledError:
            tell(ended)  # as an error it would cancel whoever waits
        except BaseException as error:  # noqa: BLE001  it is raised where kopf was started
            tell(ended, error)
        else:
            tell(ended)

    # A daemon: neither our loop nor our process waits for one that was left behind.
    threading.Thread(target=live, name="kopf", daemon=True).start()
    try:
        await asyncio.wait([exiting, ended], return_when=asyncio.FIRST_COMPLETED)
    finally:
        stop.set()
        await asyncio.wait([ended], timeout=exit_seconds * (1 + _CANCEL_SHARE))
    if not ended.done():
        raise KopfHungError("kopf could not be cancelled, and was left behind")
    ended.result()


async def _live_and_exit(
    registry: kopf.OperatorRegistry,
    settings: kopf.OperatorSettings,
    stop: threading.Event,
    exit_seconds: float,
    tell_exiting: Callable[[], None],
) -> None:
    ours = asyncio.all_tasks()
    tasks = await kopf.spawn_tasks(
        registry=registry,
        settings=settings,
        # Otherwise kopf asks for its user's name, and in a pod a user need not have one. The type
        # is a string that kopf keeps to itself.
        identity="kopeck",  # type: ignore[arg-type]
        clusterwide=True,
        stop_flag=stop,
    )
    try:
        life = asyncio.create_task(kopf.run_tasks(tasks, ignored=ours))
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        tell_exiting()
        await asyncio.wait([life], timeout=exit_seconds)
        if not life.done():
            raise KopfHungError("kopf did not exit, and was cancelled")  # by asyncio.run
        life.result()
    finally:
        # kopf waits for the flag in a thread, and no loop closes before its threads end.
        stop.set()


def _settle(future: asyncio.Future[None], error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)
