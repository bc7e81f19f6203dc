"""Whether the file that NCCL_TOPO_FILE names can help: NCCL itself ignores a wrong one silently."""

import re
from collections.abc import Sequence
from pathlib import Path

TOPO_FILE = "NCCL_TOPO_FILE"
KOPECKS_FOLDER = "/etc/kopeck/"
"""Where the operator mounts a file of its own."""
VIRTUAL_TOPOLOGY = "var/run/nvidia-topologyd/virtualTopology.xml"

_BUS_ID = re.compile(r'\sbusid="([^"]*)"')


def why_unusable(file: str, gpus: Sequence[str], root: Path) -> str | None:
    """Why NCCL does better without the file, None if it is right for these GPUs.

    `gpus` are bus ids as NCCL writes them: it compares text, so capitals never match.
    """
    if file.startswith(KOPECKS_FOLDER) and (root / VIRTUAL_TOPOLOGY).exists():
        return f"this machine brings its own in /{VIRTUAL_TOPOLOGY}"
    try:
        content = Path(file).read_text(errors="replace")
    except OSError as error:
        return f"it cannot be read ({error.strerror})"
    described = set(_BUS_ID.findall(content))
    if missing := [gpu for gpu in gpus if gpu not in described]:
        return f"it does not describe {len(missing)} of {len(gpus)} GPUs, the first at {missing[0]}"
    return None
