"""The two claims that training pods mount: torch, and a folder for checkpoints."""

from pathlib import Path
from typing import Any

SITE_CLAIM = "kopeck-site"
CHECKPOINTS_CLAIM = "kopeck-checkpoints"


def checkpoints_folder(state: Path, namespace: str) -> Path:
    """The host's folder behind a namespace's claim for checkpoints, open to any user of a pod."""
    folder = state / "checkpoints" / namespace
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o777)
    return folder


def volume_names(namespace: str) -> list[str]:
    """A volume is bound to one claim, so that each namespace has its own."""
    return [f"{claim}-{namespace}" for claim in (SITE_CLAIM, CHECKPOINTS_CLAIM)]


def volume_objects(state: Path, namespace: str, site: Path) -> dict[str, Any]:
    """The volumes and claims of a namespace, as one List."""
    checkpoints = checkpoints_folder(state, namespace)
    return {
        "apiVersion": "v1",
        "kind": "List",
        "items": [
            *_volume_and_claim(namespace, SITE_CLAIM, site, "ReadOnlyMany"),
            *_volume_and_claim(namespace, CHECKPOINTS_CLAIM, checkpoints, "ReadWriteMany"),
        ],
    }


def _volume_and_claim(
    namespace: str, claim: str, folder: Path, access_mode: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    name = f"{claim}-{namespace}"
    shared = {"storageClassName": "", "accessModes": [access_mode]}
    size = {"storage": "100Gi"}  # a hostPath is not held to it
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            **shared,
            "capacity": size,
            "persistentVolumeReclaimPolicy": "Retain",
            "hostPath": {"path": str(folder), "type": "Directory"},
            "claimRef": {"namespace": namespace, "name": claim},
        },
    }
    wanted = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": claim, "namespace": namespace},
        "spec": {**shared, "resources": {"requests": size}, "volumeName": name},
    }
    return volume, wanted
