"""What real nodes need of the machine they run on."""

import os
from pathlib import Path

from tests.cluster.commands import missing, run
from tests.cluster.errors import ClusterError, MissingError
from tests.cluster.progress import step

# Debian's package for each command that is run, or file that is used.
PACKAGE_OF = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "debootstrap": "debootstrap",
    "nft": "nftables",
    "ip": "iproute2",
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "openssl": "openssl",
    "/usr/lib/cni/bridge": "containernetworking-plugins",
}


def provide_packages() -> None:
    """Install what is missing where this is Debian.

    Raises MissingError where it is not, or where we are not root.
    """
    if os.geteuid() != 0:
        raise MissingError("real nodes need root; run as root, or with --nodes 0 without them")
    packages = sorted({PACKAGE_OF[it] for it in PACKAGE_OF if _is_missing(it)})
    if packages:
        install(packages)


def install(packages: list[str]) -> None:
    """Install Debian packages.

    Raises MissingError where this is not Debian, we are not root, or no mirror has them.
    """
    names = " ".join(packages)
    if missing(["apt-get"]) or os.geteuid() != 0:
        raise MissingError(f"{names} missing; install them with your system's package manager")
    env = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    with step(f"Installing {names}"):
        try:
            run(["apt-get", "update", "-q"], env=env)
            run(["apt-get", "install", "-qy", "--no-install-recommends", *packages], env=env)
        except ClusterError as error:
            raise MissingError(f"{names} missing: {error}") from error


def _is_missing(needed: str) -> bool:
    return not Path(needed).exists() if needed.startswith("/") else bool(missing([needed]))
