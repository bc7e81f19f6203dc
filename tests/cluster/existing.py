"""A cluster that the user has, for all that needs no more than an API server."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.binaries import binary
from tests.cluster.commands import run
from tests.cluster.errors import ClusterError


@dataclass(frozen=True)
class ExistingCluster:
    """Reached through the user's own kubeconfig; it is neither started nor stopped here."""

    kubeconfig: Path
    api_url: str

    def kubectl(self, *args: str, stdin: str | None = None) -> str:
        """Standard output of kubectl. Raises ClusterError, with what it said, if it fails."""
        return run([*_kubectl(self.kubeconfig), *args], stdin=stdin)


def existing_cluster() -> ExistingCluster | None:
    """The cluster that $KUBECONFIG names; None where it is unset or its API server is silent."""
    if not (named := os.environ.get("KUBECONFIG")):
        return None
    command = _kubectl(Path(named))
    try:
        run([*command, "--request-timeout=5s", "get", "--raw", "/readyz"])
    except ClusterError:
        return None
    server = "jsonpath={.clusters[0].cluster.server}"
    url = run([*command, "config", "view", "--minify", "--output", server])
    return ExistingCluster(Path(named), url)


def _kubectl(kubeconfig: Path) -> list[str | Path]:
    installed = shutil.which("kubectl")
    program = [installed] if installed else [binary("kubernetes"), "kubectl"]
    return [*program, f"--kubeconfig={kubeconfig}"]
