"""A watch over a rank: one whose steps do not end any more says where it stands, and leaves."""

import faulthandler
import json
import os
import sys
import threading
import traceback
from types import FrameType, TracebackType
from typing import Self

from torch._C._distributed_c10d import TCPStore

from kopeck_trainer import exit_codes
from kopeck_trainer.environment import RankEnvironment
from kopeck_trainer.flight_recorder import entries_in_flight, oldest_in_flight
from kopeck_trainer.hang_stances import exchanged_stances
from kopeck_trainer.hang_verdict import Stance, verdict
from kopeck_trainer.phases import PhaseClock
from kopeck_trainer.run_directory import leave_reason
from kopeck_trainer.timeouts import set_timeouts

POLL_SECONDS = 0.5
LAST_STEPS = 3
"""As long as this many times the last step is no hang, where steps are longer than the deadline."""

TIMEOUTS_PER_DEADLINE = 2
"""How many times longer the groups wait than the watch."""


class HangWatch:
    """Ends the process with the hang code when no step ends in time.

    The first step has the time of the rendezvous, a later one the seconds for a hang. Compiling
    does not count. The groups' own timeouts are longer: an abort of NCCL's leaves without a word.
    """

    def __init__(self, rank: RankEnvironment, store: TCPStore, clock: PhaseClock) -> None:
        self._rank = rank
        self._store_address = (store.host, store.port)
        self._clock = clock
        self._main_thread = threading.main_thread().ident
        self._allowed_seconds = rank.rendezvous_seconds
        self._progressed_at = self._counted_seconds()
        self._is_first_step = True
        self._stopped = threading.Event()
        self._strikes = False
        self._thread = threading.Thread(target=self._watch, name="kopeck-hang", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        """Where the watch strikes, what a peer's leaving breaks here is no news: it ends us."""
        self._stopped.set()
        if self._strikes:
            self._thread.join()

    def progressed(self) -> None:
        """A step has ended, and its checkpoint, if one was due, is saved."""
        now = self._counted_seconds()
        step_seconds, self._progressed_at = now - self._progressed_at, now
        self._allowed_seconds = max(self._rank.hang_seconds, LAST_STEPS * step_seconds)
        if self._is_first_step:
            self._is_first_step = False
            set_timeouts(TIMEOUTS_PER_DEADLINE * self._rank.hang_seconds)

    def _counted_seconds(self) -> float:
        return self._clock.seconds_without("compile")

    def _watch(self) -> None:
        while not self._stopped.wait(POLL_SECONDS):
            waited_seconds = self._counted_seconds() - self._progressed_at
            if waited_seconds > self._allowed_seconds:
                self._strikes = True
                self._strike(waited_seconds)

    def _strike(self, waited_seconds: float) -> None:
        own = Stance(collective=oldest_in_flight(), place=self._place())
        self._dump()
        stances = exchanged_stances(self._rank, self._store_address, own)
        sentence = verdict(stances, self._rank.world_size)
        leave_reason(f"no step ended for {waited_seconds:.0f} s: {sentence}")
        os._exit(exit_codes.HANG)

    def _dump(self) -> None:
        for entry in entries_in_flight():
            sys.stderr.write(f"rank {self._rank.rank} waits in {json.dumps(entry)}\n")
        sys.stderr.flush()
        faulthandler.dump_traceback(all_threads=True)

    def _place(self) -> str:
        return _place(sys._current_frames().get(self._main_thread or 0))  # noqa: SLF001


def _place(frame: FrameType | None) -> str:
    """The innermost line of Python."""
    if frame is None:
        return "an unknown place"
    innermost = traceback.extract_stack(frame)[-1]
    return f"{os.path.basename(innermost.filename)}:{innermost.lineno} in {innermost.name}"  # noqa: PTH119
