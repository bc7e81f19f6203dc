"""Processes that outlive the command which started them, known by pid and start time."""

import json
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.cluster.waiting import wait_until

LOG_TAIL_LINES = 12
ENTRY_SUFFIX = "-entry"  # of the command that entered a sandbox for a process and waits for it


@dataclass(frozen=True)
class Process:
    """A process that was started; `started_ticks` tells it from a later one with the same pid."""

    name: str
    pid: int
    started_ticks: int
    log: str

    def is_alive(self) -> bool:
        """Whether it still runs. A zombie does not, and one of our own is reaped here."""
        if _started_ticks(self.pid) != self.started_ticks:
            with suppress(ChildProcessError):
                os.waitpid(self.pid, os.WNOHANG)
            return False
        return True

    def has_ended(self) -> bool:
        return not self.is_alive()

    def log_tail(self) -> str:
        """The last lines that it wrote."""
        lines = Path(self.log).read_text(errors="replace").splitlines()
        return "\n".join(lines[-LOG_TAIL_LINES:])

    def kill(self) -> None:
        """Send SIGKILL, to it and to no later process with its pid."""
        if self.is_alive():
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def child(self, name: str) -> "Process":
        """Its only child, once there is one, under a name of its own."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children")
        wait_until(lambda: bool(children.read_text()), f"a child of {self.name}", watched=[self])
        pid = int(children.read_text().split()[0])
        return Process(name, pid, _started_ticks(pid) or 0, self.log)


def start(
    state: Path, name: str, argv: Sequence[str | Path], *, env: Mapping[str, str] | None = None
) -> Process:
    """Start a process in a session of its own; its log and its record lie in `state`."""
    log = state / "logs" / f"{name.removesuffix(ENTRY_SUFFIX)}.log"
    temporary = state / "tmp"
    for folder in (log.parent, temporary):
        folder.mkdir(parents=True, exist_ok=True)
    words = [str(word) for word in argv]
    output = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    pid = os.posix_spawnp(
        words[0],
        words,
        {**os.environ, "TMPDIR": str(temporary), **(env or {})},
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), output, 0o644),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
    )
    return record(state, Process(name, pid, _started_ticks(pid) or 0, str(log)))


def record(state: Path, process: Process) -> Process:
    """Note the process in `state`, for whoever ends the cluster."""
    file = _record_file(state, process.name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(asdict(process)))
    return process


def recorded(state: Path) -> Iterator[Process]:
    """All processes that `state` knows of, living or not."""
    for file in sorted((state / "processes").glob("*.json")):
        with suppress(ValueError):  # half-written in a crash: its process had not got far
            yield Process(**json.loads(file.read_text()))


def kill_all(processes: Sequence[Process]) -> None:
    """Kill them and return when they are gone."""
    for process in processes:
        process.kill()
    for process in processes:
        wait_until(process.has_ended, f"the end of {process.name}")


def end(state: Path, name: str) -> None:
    """Kill the process of this name, and forget it."""
    processes = [it for it in recorded(state) if it.name in (name, name + ENTRY_SUFFIX)]
    kill_all(processes)
    for process in processes:
        _record_file(state, process.name).unlink()


def _record_file(state: Path, name: str) -> Path:
    return state / "processes" / f"{name}.json"


def _started_ticks(pid: int) -> int | None:
    """Start time of a process in clock ticks since boot; None for none and for a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(")")[2].split()  # the name before it may hold anything
    return None if fields[0] in "ZX" else int(fields[19])
