"""The processes of the ranks: started, signalled and reaped by the launcher."""

import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from time import monotonic

from kopeck_trainer import exit_codes
from kopeck_trainer.signals import STOP_SIGNALS, WATCHED_SIGNALS

KILLED_SECONDS = 0.1
"""Between two looks at ranks that were killed and are not gone yet."""


@dataclass(frozen=True, kw_only=True)
class RankEnd:
    """How one rank ended. `exit_code` is its own, or 128 + the signal that ended it.

    `ended_at` is when it was reaped, on the monotonic clock.
    """

    rank: int
    local_rank: int
    exit_code: int
    ended_at: float
    signal_name: str | None = None

    @property
    def is_clean_stop(self) -> bool:
        return self.exit_code == exit_codes.CHECKPOINTED and self.signal_name is None


@dataclass(frozen=True, kw_only=True)
class Ranks:
    """The running ranks of this worker, by process id, each the leader of its process group."""

    local_rank_by_pid: dict[int, int]
    first_rank: int

    def send(self, number: signal.Signals) -> None:
        for pid in self.local_rank_by_pid:
            _signal_group(pid, number)

    def reap(self) -> list[RankEnd]:
        """The ranks that ended since the last call. Orphans given to PID 1 are reaped too."""
        ends = []
        while (ended := _reap_one()) is not None:
            pid, status = ended
            local_rank = self.local_rank_by_pid.pop(pid, None)
            if local_rank is not None:
                _signal_group(pid, signal.SIGKILL)  # what it started does not outlive it
                ends.append(_end(self.first_rank + local_rank, local_rank, status))
        return ends


def start_ranks(
    program: list[str],
    environ: Mapping[str, str],
    variables_by_local_rank: Sequence[Mapping[str, str]],
    *,
    cpus_by_local_rank: Sequence[frozenset[int] | None],
    first_rank: int,
) -> Ranks:
    """Each on its CPUs; None leaves it those of this process.

    Raises OSError where the program cannot be started.
    """
    ranks = Ranks(local_rank_by_pid={}, first_rank=first_rank)
    placed = zip(variables_by_local_rank, cpus_by_local_rank, strict=True)
    for local_rank, (variables, cpus) in enumerate(placed):
        with _on(cpus):
            pid = os.posix_spawnp(
                program[0],
                program,
                {**environ, **variables},
                setpgroup=0,
                setsigmask=[],
                setsigdef=[signal.SIGPIPE],  # Python ignores it, and the ranks would inherit that
            )
        ranks.local_rank_by_pid[pid] = local_rank
    return ranks


@contextmanager
def _on(cpus: frozenset[int] | None) -> Iterator[None]:
    """What is started inside inherits the CPUs of this thread; posix_spawn knows no other way."""
    if cpus is None:
        yield
        return
    own = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, own)


def supervise(ranks: Ranks, grace_seconds: float, on_stop: Callable[[], None]) -> list[RankEnd]:
    """How all ranks ended, in order; returns when the last one has.

    SIGTERM is forwarded once. From then on, or from the first rank that leaves with a clean
    checkpoint, the others have `grace_seconds`. When one fails its peers are killed at once:
    they could only wait for it.
    """
    ends: list[RankEnd] = []
    deadline: float | None = None
    while ranks.local_rank_by_pid:
        if _next_signal(deadline) in STOP_SIGNALS and deadline is None:
            on_stop()
            ranks.send(signal.SIGTERM)
            deadline = monotonic() + grace_seconds
        ended = ranks.reap()
        ends += sorted(ended, key=_is_consequence)
        if deadline is None and any(end.is_clean_stop for end in ended):
            deadline = monotonic() + grace_seconds
        if any(_is_failure(end, deadline) for end in ended) or _is_past(deadline):
            ranks.send(signal.SIGKILL)
    return ends


def first_failure(ends: Sequence[RankEnd]) -> RankEnd | None:
    """The end that explains the others, None where every rank completed."""
    return next((end for end in ends if end.exit_code != exit_codes.COMPLETED), None)


def _next_signal(deadline: float | None) -> int | None:
    if deadline is None:
        return signal.sigwaitinfo(WATCHED_SIGNALS).si_signo
    seconds_left = max(KILLED_SECONDS, deadline - monotonic())
    taken = signal.sigtimedwait(WATCHED_SIGNALS, seconds_left)
    return taken.si_signo if taken else None


def _is_past(deadline: float | None) -> bool:
    return deadline is not None and monotonic() >= deadline


def _is_failure(end: RankEnd, deadline: float | None) -> bool:
    """Once the ranks are asked to stop, one that SIGTERM just ends leaves the others their time."""
    is_stopped = end.is_clean_stop or (end.signal_name == "SIGTERM" and deadline is not None)
    return end.exit_code != exit_codes.COMPLETED and not is_stopped


def _is_consequence(end: RankEnd) -> bool:
    """Of two ranks that are reaped together, a lost peer is not the cause."""
    return end.exit_code == exit_codes.PEER_LOST


def _reap_one() -> tuple[int, int] | None:
    try:
        pid, status = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return None
    return (pid, status) if pid else None


def _end(rank: int, local_rank: int, status: int) -> RankEnd:
    code = os.waitstatus_to_exitcode(status)
    return RankEnd(
        rank=rank,
        local_rank=local_rank,
        exit_code=code if code >= 0 else 128 - code,
        ended_at=monotonic(),
        signal_name=signal_name(-code) if code < 0 else None,
    )


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # most real-time signals have no name
        return f"SIG{number}"


def _signal_group(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(pid, number)
