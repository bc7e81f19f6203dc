"""Serving what is scraped, on a real socket."""

import asyncio
import socket

import pytest
from prometheus_client import CollectorRegistry

from kopeck.api.errors import ConfigError
from kopeck.control.server import serve


def test_a_port_that_is_taken_is_named() -> None:
    with socket.socket() as other:
        other.bind(("", 0))
        other.listen()
        port = other.getsockname()[1]
        said = rf"port: {port} cannot be listened on \(Address already in use\); set another"
        with pytest.raises(ConfigError, match=said):
            asyncio.run(_serve(port))


async def _serve(port: int) -> None:
    await serve(port, CollectorRegistry(), lambda: None)
