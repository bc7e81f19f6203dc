"""The script by which Google's network plugins are set up: run in bash, its variables taken over.

Its values belong to the plugin's version beside it, so none of them is written down here.
"""

import subprocess
from collections.abc import Mapping
from pathlib import Path

from kopeck_trainer.errors import TrainerError

SCRIPTS = (
    "usr/local/gib/scripts/set_nccl_env.sh",
    "usr/local/nvidia/lib64/nccl-env-profile.sh",
)
_OF_THE_SHELL = ("_", "SHLVL", "PWD", "OLDPWD")
_SOURCE = 'source "$1" >&2 && exec env -0'


class ProfileError(TrainerError):
    """The script ends with an error, or the image has no bash to run it."""


def profile_script(root: Path) -> Path | None:
    """The script of the plugin that the pod mounts, if it mounts one."""
    return next((root / script for script in SCRIPTS if (root / script).is_file()), None)


def with_profile(script: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` with what the script sets, unless it is a variable of NCCL that `environ` has.

    Raises ProfileError with the script's last words.
    """
    given = {"NCCL_LIB_DIR": str(script.parent), **environ}
    try:
        ended = subprocess.run(
            ["bash", "-c", _SOURCE, "bash", str(script)],
            env=given,
            capture_output=True,
            check=False,
        )
    except OSError as error:
        raise ProfileError(f"{script} needs bash, which cannot run ({error.strerror})") from None
    if ended.returncode:
        words = ended.stderr.decode(errors="replace").split("\n")
        last = next((line for line in reversed(words) if line.strip()), "no word")
        raise ProfileError(f"{script} ends with code {ended.returncode}: {last.strip()}")
    pairs = (pair.partition("=") for pair in ended.stdout.decode().split("\0") if pair)
    set_by_script = {name: value for name, _, value in pairs if name not in _OF_THE_SHELL}
    users = {name: value for name, value in environ.items() if name.startswith("NCCL_")}
    return {**environ, **set_by_script, **users}
