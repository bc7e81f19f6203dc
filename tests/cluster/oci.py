"""Container images as OCI archives, written without a registry or a builder.

Format: https://github.com/opencontainers/image-spec/blob/main/image-layout.md
"""

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MEDIA_TYPE = "application/vnd.oci.image"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True)
class Layer:
    """An uncompressed layer; `size` in bytes."""

    path: Path
    digest: str
    size: int


def layer_of(path: Path) -> Layer:
    """The layer that this tar file is."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Layer(path, f"sha256:{digest}", path.stat().st_size)


def write_image(
    archive: Path,
    name: str,
    layers: Sequence[Layer],
    config: Mapping[str, Any],
    *,
    present: Sequence[Layer] = (),
) -> None:
    """Write an image of `present` and then `layers` on top of each other.

    `present` are layers whose content the node already has: the archive only names them.
    """
    stack = [*present, *layers]
    image = _json(
        {
            "architecture": ARCHITECTURES.get(platform.machine(), platform.machine()),
            "os": "linux",
            "config": config,
            "rootfs": {"type": "layers", "diff_ids": [layer.digest for layer in stack]},
        }
    )
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": f"{MEDIA_TYPE}.manifest.v1+json",
            "config": _descriptor("config.v1+json", image),
            "layers": [
                {"mediaType": f"{MEDIA_TYPE}.layer.v1.tar", "digest": it.digest, "size": it.size}
                for it in stack
            ],
        }
    )
    named = {"annotations": {"io.containerd.image.name": name}}
    index = {"schemaVersion": 2, "manifests": [_descriptor("manifest.v1+json", manifest) | named]}
    with tarfile.open(archive, "w") as tar:
        _add(tar, "oci-layout", _json({"imageLayoutVersion": "1.0.0"}))
        _add(tar, "index.json", _json(index))
        for blob in (image, manifest):
            _add(tar, _blob_path(_digest(blob)), blob)
        for layer in layers:
            tar.add(layer.path, _blob_path(layer.digest))


def _json(content: object) -> bytes:
    return json.dumps(content).encode()


def _digest(blob: bytes) -> str:
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"


def _blob_path(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"


def _descriptor(kind: str, blob: bytes) -> dict[str, Any]:
    return {"mediaType": f"{MEDIA_TYPE}.{kind}", "digest": _digest(blob), "size": len(blob)}


def _add(tar: tarfile.TarFile, path: str, content: bytes) -> None:
    entry = tarfile.TarInfo(path)
    entry.size = len(content)
    tar.addfile(entry, io.BytesIO(content))
