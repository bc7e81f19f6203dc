"""The RDMA adapters of this machine: which of them lead to the other workers."""

from collections.abc import Iterator
from pathlib import Path

_MAX_ENTRIES = 32  # of NCCL_IB_HCA: MAX_IB_DEVS in src/transport/net_ib


def adapters_to_name(root: Path) -> list[str]:
    """The InfiniBand adapters, where Ethernet ones are active beside them; else none.

    NCCL would stripe over both: clouds put a VM's accelerated Ethernet beside its InfiniBand.
    """
    active = list(_active(root / "sys/class/infiniband"))
    infiniband = sorted({name for name, layer in active if layer == "InfiniBand"})
    others = {name for name, layer in active if layer != "InfiniBand"}
    return infiniband if others and len(infiniband) <= _MAX_ENTRIES else []


def has_rdma_device(root: Path) -> bool:
    """Whether the pod was given a device: all of them come with one of these files."""
    return any((root / "dev/infiniband").glob("uverbs*"))


def _active(folder: Path) -> Iterator[tuple[str, str]]:
    """Name and link layer of each active port."""
    for port in folder.glob("*/ports/*"):
        if _read(port / "state") == "4: ACTIVE":
            yield port.parent.parent.name, _read(port / "link_layer")


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
