"""An analyser, as the rank talks with it."""

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from threading import Timer
from types import TracebackType
from typing import Self

MODULE = "kopeck_trainer.windows.analyser"
DEADLINE_SECONDS = 50.0
"""For all of it; windows of GPUs are a minute apart."""


class LostWindowError(Exception):
    """The window has no figures. `fault` is one of `kopeck_exporter.names.WINDOW_FAULTS`."""

    def __init__(self, fault: str, sentence: str) -> None:
        super().__init__(sentence)
        self.fault = fault


class Conversation:
    """With a process that is killed at its deadline. Answers are lines of JSON, passed on as such.

    Raises OSError where it cannot be started.
    """

    def __init__(self, trace: Path, steps: int, kept: Path | None) -> None:
        """`steps` are in the window. `kept`: a file for the trace, None lets it go."""
        self._is_overdue = False
        self._process = subprocess.Popen(
            [sys.executable, "-m", MODULE, str(trace), str(steps), *([str(kept)] if kept else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        )
        self._deadline = Timer(DEADLINE_SECONDS, self._overdue)
        self._deadline.daemon = True
        self._deadline.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()
        self._deadline.cancel()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(BrokenPipeError):
                if pipe:
                    pipe.close()

    def ask(self, question: str) -> str:
        """The answer to a question, one line of JSON. Raises LostWindowError without one."""
        assert self._process.stdin is not None  # noqa: S101
        with suppress(BrokenPipeError):  # it has ended: the answer says how
            self._process.stdin.write(f"{question}\n")
            self._process.stdin.flush()
        return self.answer()

    def answer(self) -> str:
        """The next line that it says. Raises LostWindowError where it says none."""
        assert self._process.stdout is not None  # noqa: S101
        line = self._process.stdout.readline().rstrip("\n")
        if self._is_overdue:
            said = f"its trace was not measured in {DEADLINE_SECONDS:.0f} s"
            raise LostWindowError("hung", said)
        if not line:
            said = f"what measures its trace ended with code {self._process.wait()}"
            raise LostWindowError("analyser", said)
        return line

    def _overdue(self) -> None:
        self._is_overdue = True
        self._process.kill()
