"""The GPUs of this machine, by their addresses on the PCI bus."""

import re
from pathlib import Path

_BUS_ID = re.compile(r"([0-9a-f]+):([0-9a-f]+):([0-9a-f]+)\.([0-9a-f])", re.IGNORECASE)


def gpu_bus_ids(root: Path) -> list[str]:
    """Bus ids as NCCL writes them; empty without NVIDIA's driver.

    The driver's folder is the same in every container: all GPUs of the node, not the pod's alone.
    """
    try:
        names = [each.name for each in (root / "proc/driver/nvidia/gpus").iterdir()]
    except OSError:
        return []
    return sorted(rendered for name in names if (rendered := _as_nccl_writes(name)))


def _as_nccl_writes(bus_id: str) -> str | None:
    """Lower case, four digits of the domain or more: src/misc/utils.cc, int64ToBusId."""
    match = _BUS_ID.fullmatch(bus_id)
    if match is None:
        return None
    domain, bus, device, function = (int(part, 16) for part in match.groups())
    return f"{domain:04x}:{bus:02x}:{device:02x}.{function:x}"
