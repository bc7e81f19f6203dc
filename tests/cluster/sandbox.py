"""The network, mount and PID namespaces that a cluster with real nodes lives in.

They hang on one process: when it is killed, the kernel ends every process, mount, device and
firewall rule of the cluster with it.
"""

import subprocess
from pathlib import Path

from tests.cluster.addresses import FAKE_POD_BLOCK, Addresses, free_addresses
from tests.cluster.binaries import binary
from tests.cluster.cache import cache_folder
from tests.cluster.commands import run
from tests.cluster.errors import ClusterError
from tests.cluster.place import Place
from tests.cluster.processes import Process, record, start
from tests.cluster.waiting import wait_until

INIT_NAME = "sandbox-child"
# Where kubelet, containerd and CNI write to whatever their own settings say.
COVERED_FOLDERS = ("/run", "/var/lib", "/var/log")
BRIDGE = "pods"


def open_sandbox(state: Path) -> Process:
    """Start the process that holds the namespaces.

    Raises ClusterError where what the cluster needs lies in a folder that will be covered.
    """
    for covered in COVERED_FOLDERS:
        for needed in (state, cache_folder()):
            if needed.is_relative_to(covered):
                raise ClusterError(
                    f"{needed} lies in {covered}, which real nodes cover with their own; "
                    "choose another folder with --state, or with XDG_CACHE_HOME for the cache"
                )
    pause = binary("pause")  # as process 1 it reaps what containers leave behind
    namespaces = ["--net", "--mount", "--pid", "--mount-proc", "--propagation", "private"]
    holder = start(state, "sandbox", ["unshare", *namespaces, "--fork", "--kill-child", pause])
    init = record(state, holder.child(INIT_NAME))
    executable = Path(f"/proc/{init.pid}/exe")
    wait_until(lambda: executable.resolve() == pause.resolve(), "the sandbox", watched=[holder])
    return init


def cover_host_folders(place: Place) -> None:
    """Let mounts reach pods but not the host, and give the sandbox system folders of its own."""
    place.run("mount", "--make-rshared", "/")
    for folder in COVERED_FOLDERS:
        place.run("mount", "-t", "tmpfs", "tmpfs", folder)


def connect(place: Place, init: Process, nodes: int) -> Addresses:
    """Lay the cable between host and sandbox, and give both ends, nodes and pods addresses."""
    addresses = _lay_cable(init)
    prefix = addresses.nodes.prefixlen
    host_side = (
        f"address add {addresses.host}/{prefix} dev {addresses.link}",
        f"link set {addresses.link} up",
        f"route add {addresses.pods} via {addresses.api_server}",
    )
    ends = [addresses.api_server, *(addresses.node(index) for index in range(nodes))]
    sandbox_side = (
        "link set lo up",
        *(f"address add {end}/{prefix} dev eth0" for end in ends),
        "link set eth0 up",
        f"route add default via {addresses.host}",
        # An API server that is asked to reach a pod of KWOK's says no at once.
        f"route add unreachable {FAKE_POD_BLOCK}",
        f"link add {BRIDGE} type bridge",
        f"address add {addresses.pod_gateway}/{addresses.pods.prefixlen} dev {BRIDGE}",
        f"link set {BRIDGE} up",
    )
    run(["ip", "-batch", "-"], stdin="\n".join(host_side))
    place.run("ip", "-batch", "-", stdin="\n".join(sandbox_side))
    return addresses


def disconnect(addresses: Addresses) -> None:
    """Take the cable away now; the kernel would do so a little later."""
    subprocess.run(["ip", "link", "delete", addresses.link], capture_output=True, check=False)


def _lay_cable(init: Process) -> Addresses:
    for addresses in free_addresses():
        ends = [addresses.link, "type", "veth", "peer", "name", "eth0", "netns", str(init.pid)]
        made = subprocess.run(["ip", "link", "add", *ends], capture_output=True, check=False)
        if made.returncode == 0:
            return addresses
    raise ClusterError("no network 10.213.x.0/24 is free; end other clusters with `down`")
