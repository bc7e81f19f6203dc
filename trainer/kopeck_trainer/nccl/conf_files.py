"""NCCL's configuration files, for what they set: a variable of ours would hide it."""

from collections.abc import Mapping
from pathlib import Path


def variables_of_files(environ: Mapping[str, str], root: Path) -> dict[str, str]:
    """What NCCL takes from files: NCCL_CONF_FILE or ~/.nccl.conf first, then /etc/nccl.conf.

    Lines are KEY=value, a comment has its # in the first column: src/misc/param.cc.
    """
    own = environ.get("NCCL_CONF_FILE") or f"{environ.get('HOME', '')}/.nccl.conf"
    return _variables(root / "etc/nccl.conf") | _variables(Path(own))


def _variables(path: Path) -> dict[str, str]:
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return {}
    pairs = (line.partition("=") for line in lines if "=" in line and not line.startswith("#"))
    found: dict[str, str] = {}
    for name, _, value in pairs:
        found.setdefault(name, value)
    return found
