"""The script by which Google's network plugins are set up: run in bash, its variables taken over.

Its values belong to the plugin's version beside it, so none of them is written down here.
"""

import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from kopeck_trainer.errors import ConfigurationError, TrainerError

SCRIPTS = (
    "usr/local/gib/scripts/set_nccl_env.sh",
    "usr/local/nvidia/lib64/nccl-env-profile.sh",
)
PROFILE_SECONDS = 60.0
"""They read a few files: what takes longer will not end."""

_OF_THE_SHELL = ("_", "SHLVL", "PWD", "OLDPWD")
_SOURCE = 'source "$1" >&2 && exec env -0'


class ProfileError(TrainerError):
    """The script ends with an error, or the image has no bash to run it."""


def profile_script(root: Path) -> Path | None:
    """The script of the plugin that the pod mounts, if it mounts one."""
    return next((root / script for script in SCRIPTS if (root / script).is_file()), None)


def with_profile(
    script: Path, environ: Mapping[str, str], seconds: float = PROFILE_SECONDS
) -> dict[str, str]:
    """`environ` with what the script sets, unless it is a variable of NCCL that `environ` has.

    Raises ProfileError with the script's last words, and ConfigurationError where it has not ended
    after so many seconds: a plugin that waits for something works for no rank.
    """
    ended = _run(script, {"NCCL_LIB_DIR": str(script.parent), **environ}, seconds)
    if ended.returncode:
        raise ProfileError(f"{script} ends with code {ended.returncode}: {_last(ended.stderr)}")
    pairs = (pair.partition("=") for pair in ended.stdout.decode().split("\0") if pair)
    set_by_script = {name: value for name, _, value in pairs if name not in _OF_THE_SHELL}
    users = {name: value for name, value in environ.items() if name.startswith("NCCL_")}
    return {**environ, **set_by_script, **users}


def _run(
    script: Path, environ: Mapping[str, str], seconds: float
) -> subprocess.CompletedProcess[bytes]:
    command = ["bash", "-c", _SOURCE, "bash", str(script)]
    pipe = subprocess.PIPE
    try:
        started = subprocess.Popen(
            command,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            process_group=0,
        )
    except OSError as error:
        raise ProfileError(f"{script} needs bash, which cannot run ({error.strerror})") from None
    with started:
        try:
            said, complained = started.communicate(timeout=seconds)
        except subprocess.TimeoutExpired as error:
            os.killpg(started.pid, signal.SIGKILL)  # what it waits for, too
            raise ConfigurationError(
                str(script),
                f"it has not ended after {seconds:g} s, its last words: {_last(error.stderr)}",
                "see what it waits for, or take its mount out of spec.workers.template",
            ) from None
    return subprocess.CompletedProcess(command, started.returncode, said, complained)


def _last(words: bytes | None) -> str:
    lines = (words or b"").decode(errors="replace").split("\n")
    return next((line for line in reversed(lines) if line.strip()), "no word").strip()
