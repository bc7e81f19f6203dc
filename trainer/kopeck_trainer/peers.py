"""Telling a lost peer from an error of one's own."""

import re

from torch import distributed as dist
from torch.distributed.checkpoint.api import CheckpointException

_SOCKET = re.compile("Connection closed by peer|Connection reset by peer|Broken pipe|Timed out")
_GLOO = re.compile(f"gloo/|{_SOCKET.pattern}")
"""gloo raises a plain RuntimeError; its text has the source file or what the socket said."""


def is_peer_lost(error: BaseException) -> bool:
    """True where `error` says that another rank went away."""
    if isinstance(error, CheckpointException):
        return any(is_peer_lost(each) for each, _ in error.failures.values())
    if isinstance(error, dist.DistError):
        return True
    return isinstance(error, RuntimeError) and bool(_GLOO.search(str(error)))


def loss_of_peer(error: BaseException) -> str:
    """What the connection to the lost peer said, without the rest of gloo's text."""
    said = _SOCKET.search(str(error))
    return said[0] if said else str(error).partition("\n")[0]
