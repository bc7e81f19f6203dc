"""The nodes that hold pods: what they have, and what their price is looked up by."""

from dataclasses import dataclass
from time import monotonic

from kopeck.cost.share import NodeCapacity, node_capacity
from kopeck.kube.cluster import Cluster
from kopeck.pricing.price import NodeKey, node_key

# Labels and capacity of a living node hardly change; a reused name is another node soon enough.
_KEPT_SECONDS = 300.0


@dataclass(frozen=True)
class Node:
    """A node as it was read last."""

    uid: str
    key: NodeKey
    capacity: NodeCapacity
    read_at_seconds: float


class Nodes:
    """Nodes by name, read when first asked for and now and then."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._nodes: dict[str, Node] = {}

    async def node(self, name: str) -> Node | None:
        """None where there is none of that name any more."""
        known = self._nodes.get(name)
        if known and monotonic() - known.read_at_seconds < _KEPT_SECONDS:
            return known
        found = await self._cluster.node(name)
        if found is None:
            return None
        node = Node(
            uid=found["metadata"]["uid"],
            key=node_key(found["metadata"].get("labels", {})),
            capacity=node_capacity(found["status"].get("capacity", {})),
            read_at_seconds=monotonic(),
        )
        # Capacity of GPUs is 0 for a while after a kubelet's restart: the highest seen counts.
        if known and known.uid == node.uid and known.capacity.gpus and not node.capacity.gpus:
            node = known
        self._nodes[name] = node
        return node
