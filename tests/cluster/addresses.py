"""Which addresses a cluster has: its own /24 for nodes and its own /24 for pods."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Network

from tests.cluster.commands import run

NODE_BLOCK = IPv4Network("10.213.0.0/16")
POD_BLOCK = IPv4Network("10.214.0.0/16")
# Of pods that do not exist: a block that no network routes, see RFC 2544.
FAKE_POD_BLOCK = IPv4Network("198.18.0.0/15")
SERVICE_NETWORK = IPv4Network("10.96.0.0/16")
FIRST_NODE = 10


@dataclass(frozen=True)
class Addresses:
    """The addresses of the cluster with this number on this machine, 0-255."""

    number: int

    @property
    def link(self) -> str:
        """The host's network device towards the cluster."""
        return f"kopeck{self.number}"

    @property
    def nodes(self) -> IPv4Network:
        return list(NODE_BLOCK.subnets(new_prefix=24))[self.number]

    @property
    def pods(self) -> IPv4Network:
        return list(POD_BLOCK.subnets(new_prefix=24))[self.number]

    @property
    def host(self) -> str:
        """The host, as the cluster sees it."""
        return str(self.nodes[1])

    @property
    def api_server(self) -> str:
        return str(self.nodes[2])

    @property
    def pod_gateway(self) -> str:
        """The bridge that all pods hang on; CoreDNS answers here."""
        return str(self.pods[1])

    def node(self, index: int) -> str:
        """Address of the node with this index, from 0."""
        return str(self.nodes[FIRST_NODE + index])


def free_addresses() -> Iterator[Addresses]:
    """Those that nothing on this machine uses now; the device's creation settles a race."""
    attached = _attached_networks()
    routed = _routed_networks()
    for number in range(256):
        addresses = Addresses(number)
        ours = (addresses.nodes, addresses.pods)
        # A wider route, as of a VPN, may cover ours: ours is more specific and wins.
        is_taken = any(
            any(one.overlaps(each) for one in attached)
            or any(one.subnet_of(each) for one in routed)
            for each in ours
        )
        if not is_taken:
            yield addresses


def _attached_networks() -> list[IPv4Network]:
    return [
        IPv4Network(f"{address['local']}/{address['prefixlen']}", strict=False)
        for link in json.loads(run(["ip", "-json", "-4", "address"]))
        for address in link.get("addr_info", [])
    ]


def _routed_networks() -> list[IPv4Network]:
    routes = json.loads(run(["ip", "-json", "-4", "route"]))
    return [IPv4Network(route["dst"]) for route in routes if route["dst"] != "default"]
