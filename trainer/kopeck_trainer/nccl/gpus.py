"""The GPUs of this pod, by their addresses on the PCI bus."""

import re
from pathlib import Path

_BUS_ID = re.compile(r"([0-9a-f]+):([0-9a-f]+):([0-9a-f]+)\.([0-9a-f])", re.IGNORECASE)
_DEVICE_MINOR = re.compile(r"^Device Minor:\s*(\d+)\s*$", re.MULTILINE)


def gpu_bus_ids(root: Path) -> list[str]:
    """Bus ids as NCCL writes them; empty without NVIDIA's driver, and where the pod has no GPU.

    The driver's folder is the same in every container, all GPUs of the node: the pod's are those
    whose device file it has.
    """
    folder = root / "proc/driver/nvidia/gpus"
    try:
        folders = [each for each in folder.iterdir() if _is_in_pod(each, root)]
    except OSError:
        return []
    return sorted(rendered for each in folders if (rendered := _as_nccl_writes(each.name)))


def _is_in_pod(gpu: Path, root: Path) -> bool:
    minor = _DEVICE_MINOR.search((gpu / "information").read_text(errors="replace"))
    return minor is not None and (root / f"dev/nvidia{minor[1]}").exists()


def _as_nccl_writes(bus_id: str) -> str | None:
    """Lower case, four digits of the domain or more: src/misc/utils.cc, int64ToBusId."""
    match = _BUS_ID.fullmatch(bus_id)
    if match is None:
        return None
    domain, bus, device, function = (int(part, 16) for part in match.groups())
    return f"{domain:04x}:{bus:02x}:{device:02x}.{function:x}"
