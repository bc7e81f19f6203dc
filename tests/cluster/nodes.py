"""Real nodes: for each a containerd and a kubelet, with folders and cgroups of their own."""

import json
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.addresses import Addresses
from tests.cluster.binaries import binary
from tests.cluster.cgroups import create_cgroup
from tests.cluster.containers import fill_store, import_image, socket_of, start_containerd
from tests.cluster.place import Place
from tests.cluster.processes import Process

REGION_LABELS = {
    "node.kubernetes.io/instance-type": "kopeck.local",
    "topology.kubernetes.io/region": "local",
}


@dataclass(frozen=True)
class Node:
    """One node; its cgroup is unique on the machine, its name in the cluster."""

    name: str
    address: str
    zone: str
    cgroup: str


def nodes_of(cluster_id: str, addresses: Addresses, count: int) -> list[Node]:
    """The nodes of a cluster, named from 1."""
    return [
        Node(
            name=f"node-{index + 1}",
            address=addresses.node(index),
            zone=f"local-{index + 1}",
            cgroup=f"kopeck-{cluster_id}-n{index + 1}",
        )
        for index in range(count)
    ]


def start_runtime(place: Place, node: Node, template: Path, image: Path) -> None:
    """Start a node's containerd on a copy of the store `template`, and give it kopeck's image."""
    store = place.state / node.name / "containerd"
    fill_store(template, store)
    start_containerd(place, node.name, store)
    import_image(place, node.name, image)


def prepare_kubelet(place: Place, node: Node, addresses: Addresses) -> None:
    """Make a node's cgroup, the kubelet's folder and its configuration."""
    create_cgroup(node.cgroup)
    folder = place.state / node.name / "kubelet"
    folder.mkdir(parents=True)
    # Sockets lie in it, and a path to a socket has at most 107 characters.
    place.run("mkdir", "-p", kubelet_root(node))
    place.run("mount", "--bind", folder, kubelet_root(node))
    config = kubelet_config(place.state, node, addresses)
    (place.state / node.name / "kubelet.json").write_text(json.dumps(config, indent=1))


def start_kubelet(place: Place, node: Node, kubeconfig: Path) -> Process:
    """Start a node's kubelet, for the first time or again."""
    labels = REGION_LABELS | {"topology.kubernetes.io/zone": node.zone}
    return place.start(
        kubelet_of(node.name),
        binary("kubernetes"),
        "kubelet",
        f"--config={place.state / node.name / 'kubelet.json'}",
        f"--kubeconfig={kubeconfig}",
        f"--root-dir={kubelet_root(node)}",
        f"--cert-dir={place.state / node.name / 'certificates'}",
        f"--hostname-override={node.name}",
        f"--node-ip={node.address}",
        f"--node-labels={','.join(f'{name}={value}' for name, value in labels.items())}",
    )


def kubelet_of(node: str) -> str:
    """Name of the process."""
    return f"{node}-kubelet"


def kubelet_root(node: Node) -> str:
    return f"/var/lib/kubelets/{node.name}"


def kubelet_config(state: Path, node: Node, addresses: Addresses) -> dict[str, object]:
    """A KubeletConfiguration."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": node.address,
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{node.cgroup}",
        "clusterDNS": [addresses.pod_gateway],
        "clusterDomain": "cluster.local",
        "containerRuntimeEndpoint": f"unix://{socket_of(node.name)}",
        "evictionHard": {
            "imagefs.available": "1%",
            "memory.available": "50Mi",
            "nodefs.available": "1%",
        },
        "failCgroupV1": False,
        "failSwapOn": False,
        "healthzPort": 0,
        "imageGCHighThresholdPercent": 100,  # no registry could give an image back
        "podLogsDir": str(state / node.name / "pod-logs"),
        "readOnlyPort": 0,
        "resolvConf": "",  # the host's servers are out of the pods' reach
        "volumePluginDir": str(state / node.name / "volume-plugins"),
    }
