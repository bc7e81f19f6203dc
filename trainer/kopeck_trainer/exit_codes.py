"""The exit codes of launcher and ranks, and the class that each stands for."""

from typing import Final, Literal

ExitClass = Literal[
    "completed",
    "checkpointed",
    "failed",
    "peer-lost",
    "hang",
    "rendezvous",
    "configuration",
    "compile-mode",
    "nonfinite-loss",
]

COMPLETED: Final = 0
FAILED: Final = 1
CONFIGURATION: Final = 78
"""EX_CONFIG of sysexits.h: another attempt would end the same way."""
CHECKPOINTED: Final = 143
"""Left after SIGTERM with everything saved: 128 + 15, what a well-behaved program answers."""
RENDEZVOUS: Final = 180
PEER_LOST: Final = 181
HANG: Final = 182
MODE_FAILED: Final = 183
"""A compile mode on trial failed, and that is remembered."""
NONFINITE_LOSS: Final = 184
"""The step is not saved: another attempt goes on from the last good checkpoint."""

_CLASS_BY_CODE: Final[dict[int, ExitClass]] = {
    COMPLETED: "completed",
    CHECKPOINTED: "checkpointed",
    CONFIGURATION: "configuration",
    RENDEZVOUS: "rendezvous",
    PEER_LOST: "peer-lost",
    HANG: "hang",
    MODE_FAILED: "compile-mode",
    NONFINITE_LOSS: "nonfinite-loss",
}


def exit_class(exit_code: int) -> ExitClass:
    """What a process that left by itself meant by its code."""
    return _CLASS_BY_CODE.get(exit_code, "failed")
