"""A cluster that the user has, for all that needs no more than an API server."""

import os
import shutil
import sys
from dataclasses import dataclass

from tests.cluster.binaries import binary
from tests.cluster.commands import run
from tests.cluster.errors import ClusterError


@dataclass(frozen=True)
class ExistingCluster:
    """Reached through the user's own kubeconfig; it is neither started nor stopped here."""

    kubeconfig: str
    """A file, or several with a colon between them."""
    api_url: str

    def kubectl(self, *args: str, stdin: str | None = None) -> str:
        """Standard output of kubectl. Raises ClusterError, with what it said, if it fails."""
        return _kubectl(self.kubeconfig, *args, stdin=stdin)


def existing_cluster() -> ExistingCluster | None:
    """The cluster that $KUBECONFIG names; None where it is unset or its API server is silent."""
    if not (named := os.environ.get("KUBECONFIG")):
        return None
    server = "jsonpath={.clusters[0].cluster.server}"
    try:
        _kubectl(named, "--request-timeout=5s", "get", "--raw", "/readyz")
        url = _kubectl(named, "config", "view", "--minify", "--output", server)
    except ClusterError as error:
        sys.stderr.write(f"KUBECONFIG ({named}) is not used: {error}\n")
        return None
    return ExistingCluster(named, url)


def _kubectl(kubeconfig: str, *args: str, stdin: str | None = None) -> str:
    installed = shutil.which("kubectl")
    program = [installed] if installed else [binary("kubernetes"), "kubectl"]
    return run([*program, *args], stdin=stdin, env=os.environ | {"KUBECONFIG": kubeconfig})
