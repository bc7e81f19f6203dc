"""What connects pods: the bridge they hang on, Services (kube-proxy), names (CoreDNS)."""

import json
from pathlib import Path

import requests

from tests.cluster.addresses import Addresses
from tests.cluster.binaries import binary
from tests.cluster.place import Place
from tests.cluster.processes import Process
from tests.cluster.sandbox import BRIDGE
from tests.cluster.waiting import wait_until

READY_PORT = 8181
COREFILE = """\
.:53 {{
  bind {address}
  ready {address}:{ready_port}
  errors
  cache {{
    success 9984 5
    denial 9984 1
  }}
  kubernetes cluster.local in-addr.arpa {{
    kubeconfig {kubeconfig}
  }}
}}
"""


def write_bridge_config(state: Path, addresses: Addresses) -> None:
    """The CNI network of all nodes: they share one bridge and one pool of addresses."""
    pool = {
        "type": "host-local",
        "dataDir": "/run/cni",
        "ranges": [[{"subnet": str(addresses.pods)}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    bridge = {"type": "bridge", "bridge": BRIDGE, "isGateway": True, "ipam": pool}
    folder = state / "cni"
    folder.mkdir(exist_ok=True)  # containerd makes it where it fills a store first
    config = {"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge]}
    (folder / "pods.conflist").write_text(json.dumps(config, indent=1))


def start_proxy(place: Place, node: str, addresses: Addresses, kubeconfig: Path) -> Process:
    """Start kube-proxy; one serves all nodes, since they share one network namespace."""
    config = place.state / "kube-proxy.json"
    config.write_text(
        json.dumps(
            {
                "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
                "kind": "KubeProxyConfiguration",
                "mode": "nftables",
                "clientConnection": {"kubeconfig": str(kubeconfig)},
                "clusterCIDR": str(addresses.pods),
                "hostnameOverride": node,
                # Else a pod would answer another on the same bridge past the translation.
                "nftables": {"masqueradeAll": True},
                # These would write settings of the whole machine.
                "conntrack": {
                    "maxPerCore": 0,
                    "tcpCloseWaitTimeout": "0s",
                    "tcpEstablishedTimeout": "0s",
                },
            },
            indent=1,
        )
    )
    return place.start("kube-proxy", binary("kubernetes"), "kube-proxy", f"--config={config}")


def start_names(place: Place, addresses: Addresses, kubeconfig: Path) -> Process:
    """Start CoreDNS on the pods' gateway."""
    corefile = place.state / "Corefile"
    address = addresses.pod_gateway
    corefile.write_text(
        COREFILE.format(address=address, ready_port=READY_PORT, kubeconfig=kubeconfig)
    )
    return place.start("coredns", binary("coredns"), "-conf", corefile)


def wait_for_names(addresses: Addresses, coredns: Process) -> None:
    """Return once CoreDNS knows the cluster's Services."""
    url = f"http://{addresses.pod_gateway}:{READY_PORT}/ready"
    wait_until(lambda: _answers(url), "CoreDNS", watched=[coredns])


def _answers(url: str) -> bool:
    try:
        return requests.get(url, timeout=2).ok
    except (requests.ConnectionError, requests.Timeout):
        return False
