"""Short-lived commands, and the sentence that says which of them is missing or failed."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.cluster.errors import ClusterError

ERROR_TAIL_CHARACTERS = 2000


def run(
    argv: Sequence[str | Path],
    *,
    stdin: str | None = None,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> str:
    """Standard output of a command. Raises ClusterError, with what it said, if it fails."""
    done = subprocess.run(
        [str(word) for word in argv],
        input=stdin,
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()[-ERROR_TAIL_CHARACTERS:]
        words = " ".join(str(word) for word in argv)
        raise ClusterError(f"`{words}` failed with exit code {done.returncode}: {said}")
    return done.stdout


def missing(commands: Sequence[str]) -> list[str]:
    """Those of `commands` that are not on the PATH."""
    return [command for command in commands if shutil.which(command) is None]
