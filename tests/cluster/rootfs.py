"""The lowest layer of the pods' image: a small Debian with Python and a C++ compiler."""

import json
import shutil
from pathlib import Path

from tests.cluster.cache import cached, key_of
from tests.cluster.commands import run
from tests.cluster.oci import Layer, layer_of
from tests.cluster.progress import step

SUITE = "bookworm"
PACKAGES = "python3,python3-dev,g++,openssl"  # Inductor compiles C++ in the pod, and hashes it
LEFT_OUT = (
    "./dev/*",
    "./usr/share/doc/*",
    "./usr/share/info/*",
    "./usr/share/locale/*",
    "./usr/share/man/*",
    "./var/cache/*",
    "./var/lib/apt/lists/*",
    "./var/log/*",
)


def rootfs_layer() -> Layer:
    """The layer, made with debootstrap in about a minute where the cache lacks it."""
    folder = cached(f"rootfs/{key_of(SUITE, PACKAGES, *LEFT_OUT)}", _make)
    return Layer(path=folder / "layer.tar", **json.loads((folder / "layer.json").read_text()))


def _make(folder: Path) -> None:
    root = folder / "root"
    root.mkdir(parents=True)
    with step("Making the pods' Debian"):
        run(["debootstrap", "--variant=minbase", f"--include={PACKAGES}", SUITE, root])
        pack(root, folder)
        shutil.rmtree(root)


def pack(root: Path, folder: Path) -> None:
    """Write `root` as layer.tar into `folder`, with its digest beside it."""
    path = folder / "layer.tar"
    left_out = [f"--exclude={pattern}" for pattern in LEFT_OUT]
    run(["tar", "--create", "--numeric-owner", *left_out, "--file", path, "--directory", root, "."])
    layer = layer_of(path)
    (folder / "layer.json").write_text(json.dumps({"digest": layer.digest, "size": layer.size}))
