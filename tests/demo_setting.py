"""Where the demo runs: a cluster of its own, or the one that KUBECONFIG names."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.cluster import ClusterError, ExistingCluster, LocalCluster
from tests.cluster.binaries import binary
from tests.cluster.definitions import wait_until_served
from tests.cluster.record import new_record
from tests.cluster.volumes import CHECKPOINTS_CLAIM, SITE_CLAIM

STATE = Path(".cluster")
NAMESPACE = "demo"
MANIFEST = Path("examples/byte-llama.yaml")
SETTINGS = Path("examples/operator.yaml")
_RESTRICTED = "pod-security.kubernetes.io/enforce=restricted"


@dataclass(frozen=True)
class Setting:
    """A cluster with all that the example needs but the operator."""

    cluster: LocalCluster | ExistingCluster
    manifest: str
    operator_settings: Path
    kubectl: str
    """As a user of it would type it."""
    stays: str = ""
    """What `make down` leaves, as the end of a sentence."""


def of_our_own() -> Setting:
    """Start a cluster of two nodes."""
    cluster = LocalCluster.start(STATE, nodes=2)
    _prepare(cluster)
    cluster.provide_volumes(NAMESPACE)
    kubectl = f"{binary('kubernetes')} kubectl --kubeconfig {STATE}/kubeconfig"
    return Setting(cluster, MANIFEST.read_text(), SETTINGS, kubectl)


def on(cluster: ExistingCluster) -> Setting:
    """Use a cluster whose nodes can pull KOPECK_IMAGE. Raises ClusterError where it is unset."""
    if not (image := os.environ.get("KOPECK_IMAGE")):
        raise ClusterError(
            f"KUBECONFIG names a cluster ({cluster.api_url}), to which the demo's image is not"
            " known; set KOPECK_IMAGE to one that its nodes can pull (images/trainer, with the"
            " exporter and examples/ added), or unset KUBECONFIG for a cluster of the demo's own"
        )
    new_record(STATE.resolve(), 0)
    _prepare(cluster)
    claims = cluster.kubectl("get", "pvc", f"--namespace={NAMESPACE}", "--output=name")
    if CHECKPOINTS_CLAIM not in claims:
        cluster.kubectl("create", "--filename=-", stdin=yaml.safe_dump(_checkpoints_claim()))
    manifest = _manifest_for(image, has_site=SITE_CLAIM in claims)
    stays = "; in your cluster the namespaces demo and kopeck-system and the definition stay"
    return Setting(cluster, yaml.safe_dump(manifest), _settings_for(image), "kubectl", stays)


def _prepare(cluster: LocalCluster | ExistingCluster) -> None:
    """The TrainingJob's definition, and a namespace under the strictest pod security."""
    cluster.kubectl("apply", "--filename=crds/")
    wait_until_served(cluster.kubectl, "trainingjobs.kopeck.dev")
    if not cluster.kubectl("get", "namespace", NAMESPACE, "--ignore-not-found"):
        cluster.kubectl("create", "namespace", NAMESPACE)
    cluster.kubectl("label", "namespace", NAMESPACE, _RESTRICTED, "--overwrite")
    cluster.kubectl("delete", "--ignore-not-found", f"--namespace={NAMESPACE}", "tj", "byte-llama")


def _checkpoints_claim() -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": CHECKPOINTS_CLAIM, "namespace": NAMESPACE},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def _manifest_for(image: str, *, has_site: bool) -> dict[str, Any]:
    manifest: dict[str, Any] = yaml.safe_load(MANIFEST.read_text())
    manifest["spec"]["image"] = image
    if not has_site:  # the image has torch then
        pod = manifest["spec"]["workers"]["template"]["spec"]
        pod["volumes"] = [each for each in pod["volumes"] if each["name"] != "site"]
        trainer = pod["containers"][0]
        mounts = trainer["volumeMounts"]
        trainer["volumeMounts"] = [each for each in mounts if each["name"] != "site"]
    return manifest


def _settings_for(image: str) -> Path:
    settings = yaml.safe_load(SETTINGS.read_text())
    settings |= {
        "exporterImage": os.environ.get("KOPECK_EXPORTER_IMAGE", image),
        "priceBook": str((SETTINGS.parent / settings["priceBook"]).resolve()),
    }
    file = STATE / "operator.yaml"
    file.write_text(yaml.safe_dump(settings))
    return file
