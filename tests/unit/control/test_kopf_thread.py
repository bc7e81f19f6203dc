"""However kopf ends, or does not end, whoever started it goes on."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import kopf
import pytest

from kopeck.control.kopf_thread import KopfHungError, run_kopf

EXIT_SECONDS = 0.2


class Login:
    """A login of kopf that waits for ever, and may refuse to be cancelled."""

    def __init__(self, *, can_be_cancelled: bool) -> None:
        self.can_be_cancelled = can_be_cancelled
        self.is_reached = threading.Event()
        self.is_released = threading.Event()
        self.registry = kopf.OperatorRegistry()
        kopf.on.login(registry=self.registry)(self.log_in)

    async def log_in(self, **_: Any) -> None:
        self.is_reached.set()
        while not self.is_released.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                if self.can_be_cancelled:
                    raise
        raise asyncio.CancelledError


@pytest.fixture
def hanging() -> Iterator[Login]:
    login = Login(can_be_cancelled=False)
    yield login
    login.is_released.set()
    join_kopf_threads()


def join_kopf_threads() -> None:
    for thread in threading.enumerate():
        if thread.name == "kopf":
            thread.join()


def live(login: Login, stop: threading.Event) -> asyncio.Task[None]:
    settings = kopf.OperatorSettings()
    settings.scanning.disabled = True
    settings.process.ultimate_exiting_timeout = None
    return asyncio.create_task(run_kopf(login.registry, settings, stop, EXIT_SECONDS))


def test_a_kopf_that_does_not_exit_is_cancelled() -> None:
    login, stop = Login(can_be_cancelled=True), threading.Event()

    async def main() -> None:
        life = live(login, stop)
        await asyncio.to_thread(login.is_reached.wait)
        stop.set()
        with pytest.raises(KopfHungError, match="was cancelled"):
            await life

    asyncio.run(main())
    join_kopf_threads()


def test_a_kopf_that_cannot_be_cancelled_is_left_behind(hanging: Login) -> None:
    stop = threading.Event()

    async def main() -> None:
        life = live(hanging, stop)
        await asyncio.to_thread(hanging.is_reached.wait)
        stop.set()
        with pytest.raises(KopfHungError, match="was left behind"):
            await life

    asyncio.run(main())


def test_the_end_of_the_operator_waits_for_no_hanging_kopf(hanging: Login) -> None:
    stop = threading.Event()

    async def main() -> None:
        life = live(hanging, stop)
        await asyncio.to_thread(hanging.is_reached.wait)
        life.cancel()
        with pytest.raises(asyncio.CancelledError):
            await life
        assert stop.is_set()

    asyncio.run(main())
