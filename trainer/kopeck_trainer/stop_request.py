"""SIGTERM, as a wish that the ranks agree on at the end of a step."""

import signal
from types import FrameType


class StopRequest:
    """Set by SIGTERM once `listen` was called.

    Before that nothing is worth saving and the signal ends the process at once, even while it
    waits for its peers inside of torch.
    """

    def __init__(self) -> None:
        self.is_set = False

    def listen(self) -> None:
        signal.signal(signal.SIGTERM, self._ask)

    def _ask(self, _number: int, _frame: FrameType | None) -> None:
        self.is_set = True


def end_by_sigterm() -> None:
    """Let SIGTERM do what it does to a program that saves nothing."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.raise_signal(signal.SIGTERM)
