"""A node's containerd, and the store of images that it starts from."""

import shutil
from pathlib import Path

from tests.cluster.binaries import binary
from tests.cluster.cache import cached, key_of
from tests.cluster.commands import run
from tests.cluster.images import PAUSE_IMAGE, write_base_image, write_pause_image
from tests.cluster.place import Place
from tests.cluster.processes import Process, end
from tests.cluster.progress import step
from tests.cluster.rootfs import rootfs_layer
from tests.cluster.waiting import wait_until

TEMPLATE = "template"  # stands for a node while there is no node's store yet
CONFIG = """\
version = 2
root = "{root}"
state = "{runtime}/containerd"
[grpc]
  address = "{socket}"
[plugins."io.containerd.grpc.v1.cri"]
  # Else no container starts where the machine lacks CAP_SYS_RESOURCE.
  restrict_oom_score_adj = true
  sandbox_image = "{pause}"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{cni}"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
"""


def containerd_of(node: str) -> str:
    """Name of the process."""
    return f"{node}-containerd"


def socket_of(node: str) -> str:
    """Where a node's containerd listens, inside the sandbox."""
    return f"/run/{node}/containerd.sock"


def start_containerd(place: Place, node: str, root: Path) -> Process:
    """Start a node's containerd on the store `root` and return once it answers."""
    config = place.state / f"{node}-containerd.toml"
    config.write_text(
        CONFIG.format(
            root=root,
            runtime=f"/run/{node}",
            socket=socket_of(node),
            pause=PAUSE_IMAGE,
            cni=place.state / "cni",
        )
    )
    containerd = place.start(containerd_of(node), "containerd", "--config", config)
    socket = place.root / socket_of(node).lstrip("/")
    wait_until(socket.exists, f"containerd of {node}", watched=[containerd])
    return containerd


def import_image(place: Place, node: str, archive: Path) -> None:
    """Give a node the image in this archive."""
    place.run("ctr", "-a", socket_of(node), "-n", "k8s.io", "images", "import", archive)


def fill_store(template: Path, folder: Path) -> None:
    """Give a node its store: a copy of the one that already holds the pause and base images.

    Unpacking half a gigabyte on every start of every node would take most of the start. Unpacked
    layers are never written to, so that links to them will do; only the databases are copied.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    if template.stat().st_dev != folder.parent.stat().st_dev:
        run(["cp", "--archive", template, folder])
        return
    run(["cp", "--archive", "--link", template, folder])
    for database in template.glob("*/*.db"):
        copy = folder / database.relative_to(template)
        copy.unlink()
        shutil.copy2(database, copy)


def store_template(place: Place) -> Path:
    """The store that nodes start from, made in some ten seconds where the cache lacks it."""
    pause = binary("pause")
    key = key_of(str(pause), rootfs_layer().digest, run(["containerd", "--version"]))
    return cached(f"store/{key}", lambda path: _fill_template(place, path))


def _fill_template(place: Place, root: Path) -> None:
    with step("Unpacking the pods' Debian"):
        start_containerd(place, TEMPLATE, root)
        for archive in (write_pause_image(place.state), write_base_image(place.state)):
            import_image(place, TEMPLATE, archive)
            archive.unlink()
        end(place.state, containerd_of(TEMPLATE))
