"""NCCL's configuration files, for what they set: a variable of ours would hide it."""

from collections.abc import Mapping
from pathlib import Path

from kopeck.topology.conf_file import conf_variables


def variables_of_files(environ: Mapping[str, str], root: Path) -> dict[str, str]:
    """What NCCL takes from files: NCCL_CONF_FILE or ~/.nccl.conf first, then /etc/nccl.conf."""
    own = environ.get("NCCL_CONF_FILE") or f"{environ.get('HOME', '')}/.nccl.conf"
    return _variables(root / "etc/nccl.conf") | _variables(Path(own))


def _variables(path: Path) -> dict[str, str]:
    try:
        return conf_variables(path.read_text(errors="replace"))
    except OSError:
        return {}
