"""The images of a cluster: the pause container's, and kopeck's own from the working tree."""

import tarfile
from pathlib import Path

from tests.cluster.binaries import binary
from tests.cluster.oci import layer_of, write_image
from tests.cluster.rootfs import rootfs_layer
from tests.cluster.site_packages import site_packages

PAUSE_IMAGE = "localhost/pause:1"
BASE_IMAGE = "localhost/kopeck-base:1"
KOPECK_IMAGE = "localhost/kopeck:dev"
OPERATOR_IMAGE = "localhost/kopeck-operator:dev"
HOME = "opt/kopeck"
# /site is where pods mount the claim `kopeck-site`, with torch and numpy.
PYTHON_PATH = f"/{HOME}:/{HOME}/examples:/site"
REPOSITORY = Path(__file__).parents[2]
SOURCES = {
    "operator/kopeck": f"{HOME}/kopeck",
    "exporters/kopeck_exporter": f"{HOME}/kopeck_exporter",
    "trainer/kopeck_trainer": f"{HOME}/kopeck_trainer",
    "examples": f"{HOME}/examples",
}


def write_pause_image(folder: Path) -> Path:
    """The image that holds a pod's namespaces, as an archive in `folder`."""
    layer = folder / "pause-layer.tar"
    with tarfile.open(layer, "w") as tar:
        tar.add(binary("pause"), "pause")
    archive = folder / "pause.tar"
    write_image(archive, PAUSE_IMAGE, [layer_of(layer)], {"Entrypoint": ["/pause"]})
    layer.unlink()
    return archive


def write_base_image(folder: Path) -> Path:
    """What kopeck's image stands on, as an archive in `folder`."""
    archive = folder / "base.tar"
    write_image(archive, BASE_IMAGE, [rootfs_layer()], {})
    return archive


def write_kopeck_image(folder: Path) -> Path:
    """Exporter and trainer on top of the base image, which the node must have, as an archive."""
    return _write_image_of_sources(folder, KOPECK_IMAGE, site_packages("exporter"))


def write_operator_image(folder: Path) -> Path:
    """Likewise the operator with its packages, as images/operator/Dockerfile makes it."""
    return _write_image_of_sources(folder, OPERATOR_IMAGE, site_packages("operator"))


def _write_image_of_sources(folder: Path, name: str, packages: Path) -> Path:
    """The working tree with packages beside it, on top of the base image."""
    stem = name.removeprefix("localhost/").removesuffix(":dev")
    layer = folder / f"{stem}-layer.tar"
    with tarfile.open(layer, "w") as tar:
        tar.add(packages, HOME, filter=_readable)
        for source, target in SOURCES.items():
            tar.add(REPOSITORY / source, target, filter=_readable)
    archive = folder / f"{stem}.tar"
    config = {"Env": ["PATH=/usr/bin:/bin", f"PYTHONPATH={PYTHON_PATH}", "PYTHONUNBUFFERED=1"]}
    write_image(archive, name, [layer_of(layer)], config, present=[rootfs_layer()])
    layer.unlink()
    return archive


def _readable(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """The entry as any user of a pod may read it; None for what Python only caches."""
    if "__pycache__" in entry.name:
        return None
    entry.uid = entry.gid = 0
    entry.mode |= 0o755 if entry.isdir() else 0o444
    return entry
