"""NCCL's configuration files, for what they set: a variable of ours would hide it."""

from collections.abc import Mapping
from pathlib import Path


def variables_of_files(environ: Mapping[str, str], root: Path) -> set[str]:
    """Names that NCCL takes from files: NCCL_CONF_FILE or ~/.nccl.conf, and /etc/nccl.conf.

    Lines are KEY=value, a comment has its # in the first column: src/misc/param.cc.
    """
    own = environ.get("NCCL_CONF_FILE") or f"{environ.get('HOME', '')}/.nccl.conf"
    lines = [*_lines(Path(own)), *_lines(root / "etc/nccl.conf")]
    return {line.partition("=")[0] for line in lines if "=" in line and not line.startswith("#")}


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(errors="replace").splitlines()
    except OSError:
        return []
