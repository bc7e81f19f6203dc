"""The cgroups that a node's pods live under, one root per node, in whatever version is mounted."""

import os
from contextlib import suppress
from pathlib import Path

from tests.cluster.waiting import wait_until

MOUNT = Path("/sys/fs/cgroup")


def create_cgroup(name: str) -> None:
    """Make the root cgroup `/name` in every hierarchy, fit to hold cgroups of its own."""
    for hierarchy in _hierarchies_with_controllers():
        group = hierarchy / name
        group.mkdir(exist_ok=True)
        for setting in ("cpuset.cpus", "cpuset.mems"):  # empty in a new group of version 1
            if not _is_unified(hierarchy) and (hierarchy / setting).exists():
                (group / setting).write_text((hierarchy / setting).read_text())
        if _is_unified(hierarchy):
            _hand_controllers_down(hierarchy)


def remove_cgroups(names: list[str]) -> None:
    """Remove these root cgroups and all in them, once their last process is gone."""
    wait_until(lambda: not _remaining(names), "the end of the nodes' cgroups", seconds=30)


def _remaining(names: list[str]) -> list[Path]:
    """What is left after one attempt to remove it all."""
    groups = [hierarchy / name for hierarchy in _hierarchies() for name in names]
    for group in groups:
        for folder, _, _ in os.walk(group, topdown=False):
            with suppress(OSError):  # busy until the kernel has buried its last process
                Path(folder).rmdir()
    return [group for group in groups if group.exists()]


def _hierarchies() -> list[Path]:
    if _is_unified(MOUNT):
        return [MOUNT]
    # Names such as cpu,cpuacct are reached through links as well.
    return [it for it in MOUNT.iterdir() if it.is_dir() and not it.is_symlink()]


def _hierarchies_with_controllers() -> list[Path]:
    """All but the second version's beside the first, where kubelet makes a cgroup by itself."""
    return [it for it in _hierarchies() if it == MOUNT or not _is_unified(it)]


def _is_unified(hierarchy: Path) -> bool:
    return (hierarchy / "cgroup.controllers").exists()


def _hand_controllers_down(hierarchy: Path) -> None:
    for controller in (hierarchy / "cgroup.controllers").read_text().split():
        with suppress(OSError):  # not every controller can be handed down everywhere
            (hierarchy / "cgroup.subtree_control").write_text(f"+{controller}")
