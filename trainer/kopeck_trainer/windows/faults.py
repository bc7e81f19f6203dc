"""What goes wrong with windows: counted each time, said the first time."""

import sys
from collections import Counter

from kopeck_exporter.names import WINDOW_FAULTS
from kopeck_trainer.reporter import Reporter


class WindowFaults:
    """By the words of `kopeck_exporter.names.WINDOW_FAULTS`."""

    def __init__(self, rank: int, reporter: Reporter) -> None:
        self._rank = rank
        self._reporter = reporter
        self._counts: Counter[str] = Counter(dict.fromkeys(WINDOW_FAULTS, 0))

    def count(self, fault: str, sentence: str) -> None:
        """Safe to call from any thread: each counts faults of its own kinds."""
        self._counts[fault] += 1
        self._reporter.update(window_faults=dict(self._counts))
        if self._counts[fault] == 1:
            sys.stderr.write(f"kopeck: rank {self._rank} has no trace window: {sentence}\n")
            sys.stderr.flush()
