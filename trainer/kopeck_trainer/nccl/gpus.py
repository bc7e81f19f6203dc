"""The GPUs of this pod, by their addresses on the PCI bus."""

import re
from collections.abc import Mapping
from pathlib import Path

_BUS_ID = re.compile(r"([0-9a-f]+):([0-9a-f]+):([0-9a-f]+)\.([0-9a-f])", re.IGNORECASE)
_DEVICE_MINOR = re.compile(r"^Device Minor:\s*(\d+)\s*$", re.MULTILINE)
_UUID = re.compile(r"^GPU UUID:\s*(\S+)\s*$", re.MULTILINE)
_VISIBLE_DEVICES = "CUDA_VISIBLE_DEVICES"


def gpu_bus_ids(root: Path) -> list[str]:
    """Bus ids as NCCL writes them; empty without NVIDIA's driver, and where the pod has no GPU.

    The driver's folder is the same in every container, all GPUs of the node: the pod's are those
    whose device file it has.
    """
    return list(_uuids_by_bus_id(root))


def visible_gpus(environ: Mapping[str, str], root: Path) -> list[str]:
    """Bus ids in the order of CUDA's device numbers, where all GPUs are alike; empty if unknown."""
    uuids = _uuids_by_bus_id(root)
    named = environ.get(_VISIBLE_DEVICES)
    if named is None:
        return list(uuids)
    found = [_gpu_of(word.strip(), uuids) for word in named.split(",")]
    return [gpu for gpu in found if gpu] if all(found) else []


def _gpu_of(word: str, uuids: Mapping[str, str]) -> str | None:
    """By a number, or by how its UUID begins; None for what is neither, as a part of a GPU is."""
    if word.isdecimal():
        return dict(enumerate(uuids)).get(int(word))
    matching = [gpu for gpu, uuid in uuids.items() if word and uuid.startswith(word)]
    return matching[0] if len(matching) == 1 else None


def _uuids_by_bus_id(root: Path) -> dict[str, str]:
    """In the order of the bus; the UUID is empty where the driver does not tell it."""
    try:
        folders = list((root / "proc/driver/nvidia/gpus").iterdir())
    except OSError:
        return {}
    told = {folder.name: _information(folder) for folder in folders}
    found = {
        address: _first(_UUID, text)
        for name, text in told.items()
        if (address := _address(name)) and _is_in_pod(text, root)
    }
    return {_as_nccl_writes(address): found[address] for address in sorted(found)}


def _information(gpu: Path) -> str:
    return (gpu / "information").read_text(errors="replace")


def _first(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return match[1] if match else ""


def _is_in_pod(information: str, root: Path) -> bool:
    minor = _first(_DEVICE_MINOR, information)
    return bool(minor) and (root / f"dev/nvidia{minor}").exists()


def _address(bus_id: str) -> tuple[int, ...] | None:
    match = _BUS_ID.fullmatch(bus_id)
    return tuple(int(part, 16) for part in match.groups()) if match else None


def _as_nccl_writes(address: tuple[int, ...]) -> str:
    """Lower case, four digits of the domain or more: src/misc/utils.cc, int64ToBusId."""
    domain, bus, device, function = address
    return f"{domain:04x}:{bus:02x}:{device:02x}.{function:x}"
