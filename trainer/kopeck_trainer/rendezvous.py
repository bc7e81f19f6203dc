"""Waiting for worker 0: its name in DNS, then its port."""

import socket
from collections.abc import Callable
from time import monotonic

from kopeck_trainer.errors import RendezvousError

POLL_SECONDS = 1.0
"""Slow: a name asked for too early stays unknown in the caches on the way for seconds."""


def fully_qualified(host: str, namespace: str, resolv_conf: str) -> str:
    """`host` with the cluster's domain and a trailing dot, which keeps the search list out of it.

    The domain comes from the entry `<namespace>.svc.<domain>` of the search list. A host that is
    no `….svc` name, and one on a machine without such an entry, is used as it is.
    """
    prefix = f"{namespace}.svc."
    if not host.endswith(".svc"):
        return host
    for entry in _search_list(resolv_conf):
        if entry.startswith(prefix):
            return f"{host}.{entry.removeprefix(prefix)}."
    return host


def _search_list(resolv_conf: str) -> list[str]:
    """The last `search` line counts, see resolv.conf(5)."""
    lines = [line.split() for line in resolv_conf.splitlines()]
    searches = [words[1:] for words in lines if words and words[0] == "search"]
    return [entry.rstrip(".") for entry in searches[-1]] if searches else []


def wait_for_master(host: str, port: int, *, seconds: float, pause: Callable[[float], None]) -> str:
    """The address of worker 0, once its port answers.

    `pause` waits the seconds that it is given, or raises to end the wait. Raises RendezvousError
    after `seconds`.
    """
    deadline = monotonic() + seconds
    missing = f"{host} has no address in DNS"
    while monotonic() < deadline:
        for address in _addresses(host, port):
            if _answers(address, port):
                return address
            missing = f"{address}:{port} does not answer"
        pause(POLL_SECONDS)
    raise RendezvousError(f"worker 0 was not found within {seconds:.0f} s: {missing}")


def _addresses(host: str, port: int) -> list[str]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        return []
    return [str(socket_address[0]) for *_, socket_address in found]


def _answers(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), timeout=POLL_SECONDS).close()
    except OSError:
        return False
    return True
