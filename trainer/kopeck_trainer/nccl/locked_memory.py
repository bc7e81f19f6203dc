"""How much memory this container may lock, which RDMA does with all that it sends from."""

import resource
from pathlib import Path

# NCCL locks some MiB for each channel and peer; the default of systemd is 8 MiB in all.
_ENOUGH_BYTES = 1024**3
_CAP_IPC_LOCK = 14  # linux/capability.h


def raise_limit() -> int:
    """The limit in bytes that ranks inherit, raised as far as anybody may; -1 is none."""
    _, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (hard, hard))
    return hard


def why_too_little(limit_bytes: int, process_status: Path) -> str | None:
    """A sentence that says what to change, None where the limit is enough or does not hold."""
    if limit_bytes == resource.RLIM_INFINITY or limit_bytes >= _ENOUGH_BYTES:
        return None
    if _has_capability(process_status, _CAP_IPC_LOCK):
        return None
    return (
        f"only {limit_bytes // 1024} KiB of memory may be locked, too little for RDMA: NCCL fails"
        " or falls back to TCP; set LimitMEMLOCK=infinity for the container runtime of the nodes"
    )


def _has_capability(process_status: Path, number: int) -> bool:
    for line in process_status.read_text().splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> number & 1)
    return False
