"""Measuring a window beside the training: the rank starts an analyser and passes lines on."""

import json
from pathlib import Path
from threading import Thread
from typing import Any

from kopeck_trainer.environment import RankEnvironment
from kopeck_trainer.reporter import Reporter
from kopeck_trainer.windows.conversation import Conversation, LostWindowError
from kopeck_trainer.windows.exchange import UNKNOWN, Exchange
from kopeck_trainer.windows.faults import WindowFaults


class Analysis:
    """Of one rank's windows, one at a time. What it finds goes into the rank's reports."""

    def __init__(  # noqa: PLR0913  one of each thing that it connects
        self,
        rank: RankEnvironment,
        store_address: tuple[str, int],
        steps: int,
        kept: Path | None,
        reporter: Reporter,
        faults: WindowFaults,
    ) -> None:
        """`steps` are in a window. `kept`: a folder for the last one's trace, None deletes it."""
        self._steps = steps
        self._exchange = Exchange(rank, store_address)
        self._kept = kept / rank.job_uid / f"rank{rank.rank}.json.gz" if kept else None
        self._reporter = reporter
        self._faults = faults
        self._thread: Thread | None = None

    @property
    def is_under_way(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def begin(self, trace: Path, step: int, ended_at_unix_seconds: float) -> None:
        """Measure the window that ended after `step`, and delete its trace."""
        if self.is_under_way:
            trace.unlink(missing_ok=True)
            self._faults.count("hung", "the one before is still being measured")
            return
        self._thread = Thread(
            target=self._run,
            args=(trace, step, ended_at_unix_seconds),
            name="kopeck-window",
            daemon=True,
        )
        self._thread.start()

    def _run(self, trace: Path, step: int, ended_at_unix_seconds: float) -> None:
        try:
            with Conversation(trace, self._steps, self._kept) as analyser:
                window = self._window(analyser, step)
                self._reporter.update(comm_window={"time": ended_at_unix_seconds, **window})
                self._reporter.send()
                if self._kept:
                    _raise_if_refused(analyser.answer(), "not_kept")
        except LostWindowError as lost:
            self._faults.count(lost.fault, str(lost))
        except OSError as error:
            self._faults.count("analyser", f"its trace cannot be measured ({error.strerror})")
        finally:
            trace.unlink(missing_ok=True)

    def _window(self, analyser: Conversation, step: int) -> dict[str, Any]:
        told = analyser.answer()
        _raise_if_refused(told, "analyser")
        shortest = self._shortest(analyser, step, told)
        window: dict[str, Any] = json.loads(analyser.ask(f'{{"shortest": {shortest}}}'))
        return window

    def _shortest(self, analyser: Conversation, step: int, told: str) -> str:
        """The shortest durations of any rank, as JSON; unknown where a rank does not tell."""
        try:
            return self._exchange.answer(
                step, told, lambda ranks: analyser.ask(f'{{"ranks": [{", ".join(ranks)}]}}')
            )
        except RuntimeError as error:
            reason = str(error).partition("\n")[0]
            self._faults.count("unanswered", f"waiting is unknown, not all ranks told ({reason})")
            return UNKNOWN


def _raise_if_refused(answer: str, fault: str) -> None:
    said = json.loads(answer)
    if isinstance(said, dict) and "error" in said:
        raise LostWindowError(fault, said["error"])
