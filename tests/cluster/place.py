"""Where a cluster runs: on the host, or in a sandbox."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.commands import run
from tests.cluster.processes import ENTRY_SUFFIX, Process, record, start


@dataclass(frozen=True)
class Place:
    """A folder for all that a cluster writes, and the sandbox's first process if there is one."""

    state: Path
    init: Process | None = None

    @property
    def inside(self) -> tuple[str, ...]:
        """The words before a command that make it run here."""
        if self.init is None:
            return ()
        return ("nsenter", "--target", str(self.init.pid), "--net", "--mount", "--pid", "--")

    @property
    def root(self) -> Path:
        """The root folder that its processes see, from here."""
        return Path(f"/proc/{self.init.pid}/root") if self.init else Path("/")

    def start(self, name: str, *argv: str | Path, env: Mapping[str, str] | None = None) -> Process:
        """Start a process here that stays; see `processes.start`."""
        if self.init is None:
            return start(self.state, name, argv, env=env)
        entry = start(self.state, name + ENTRY_SUFFIX, [*self.inside, *argv], env=env)
        return record(self.state, entry.child(name))

    def run(self, *argv: str | Path, stdin: str | None = None) -> str:
        """Standard output of a command that is run here."""
        return run([*self.inside, *argv], stdin=stdin)
