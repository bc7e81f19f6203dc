"""The chart charts/kopeck, as tests render and install it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.binaries import binary
from tests.cluster.commands import run
from tests.operator_process import PRICES

CHART = Path("charts/kopeck")
RELEASE = "kopeck"
NAMESPACE = "kopeck-system"
VALUES = {
    "image": "localhost/kopeck-operator:dev",
    "config": {"exporterImage": "localhost/kopeck:dev", "refreshSeconds": 1},
    "priceBook": PRICES,
}


def rendered(values: Mapping[str, Any] = VALUES, *options: str) -> list[dict[str, Any]]:
    """The manifests that the chart gives, without a cluster. Raises ClusterError if it refuses."""
    said = _helm("template", RELEASE, CHART, "--values=-", *options, values=values)
    return [each for each in yaml.safe_load_all(said) if each]


def is_of_rights(manifest: Mapping[str, Any]) -> bool:
    """Whether it is the service account, one of its roles or what binds them."""
    return manifest["kind"] == "ServiceAccount" or "Role" in manifest["kind"]


def install(
    kubeconfig: Path, values: Mapping[str, Any] = VALUES, *options: str, release: str = RELEASE
) -> str:
    """Install or upgrade a release and return its notes once the operator is ready."""
    words = ("upgrade", release, CHART, "--install", "--create-namespace", "--values=-")
    wait = ("--wait", "--timeout=3m")
    return _helm(*words, *wait, *options, f"--kubeconfig={kubeconfig}", values=values)


def uninstall(kubeconfig: Path) -> str:
    """Remove the release; what helm says."""
    return _helm("uninstall", RELEASE, "--wait", f"--kubeconfig={kubeconfig}")


def manifest(kubeconfig: Path) -> str:
    """What the release installed, as YAML."""
    return _helm("get", "manifest", RELEASE, f"--kubeconfig={kubeconfig}")


def _helm(*words: str | Path, values: Mapping[str, Any] | None = None) -> str:
    stdin = None if values is None else yaml.safe_dump(dict(values))
    return run([binary("helm"), *words, f"--namespace={NAMESPACE}"], stdin=stdin)
