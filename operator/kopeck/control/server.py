"""/metrics and /healthz of the operator."""

import os
from collections.abc import Callable

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from kopeck.api.errors import ConfigError


async def serve(
    port: int, registry: CollectorRegistry, what_is_wrong: Callable[[], str | None]
) -> tuple[web.AppRunner, int]:
    """Serve until the runner is cleaned up; returns it and the port that was bound.

    Raises ConfigError for a port that cannot be had.
    """

    async def metrics(request: web.Request) -> web.Response:
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        return web.Response(body=encode(registry), headers={"Content-Type": content_type})

    async def healthz(_: web.Request) -> web.Response:
        wrong = what_is_wrong()
        return web.Response(text=wrong or "ok", status=503 if wrong else 200)

    application = web.Application()
    application.router.add_get("/metrics", metrics)
    application.router.add_get("/healthz", healthz)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "0.0.0.0", port)  # noqa: S104  scraped from outside the pod
    try:
        await site.start()
    except OSError as error:
        await runner.cleanup()
        why = os.strerror(error.errno) if error.errno else error
        wrong = f"{port} cannot be listened on ({why})"
        raise ConfigError("port", wrong, "set another") from None
    bound: int = runner.addresses[0][1]
    return runner, bound
