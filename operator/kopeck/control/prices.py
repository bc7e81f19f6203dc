"""What the pods of a job pay: their nodes are read, the price book is asked."""

from collections.abc import Iterable
from dataclasses import dataclass
from time import monotonic

from kopeck.cost.charging import UNKNOWN_PRICE, PodPrice
from kopeck.cost.share import NodeCapacity, node_capacity, node_share
from kopeck.kube.cluster import Cluster
from kopeck.plan.pod_facts import PodFacts
from kopeck.pricing.book import PriceBook
from kopeck.pricing.price import NodeKey, node_key

# Labels and capacity of a living node hardly change; a reused name is another node soon enough.
_NODE_KEPT_SECONDS = 300.0


@dataclass(frozen=True)
class _Node:
    uid: str
    key: NodeKey
    capacity: NodeCapacity
    read_at_seconds: float


class Prices:
    """Prices of pods by the nodes that hold them."""

    def __init__(self, cluster: Cluster, book: PriceBook) -> None:
        self._cluster = cluster
        self._book = book
        self._nodes: dict[str, _Node] = {}

    async def of(self, pods: Iterable[PodFacts]) -> dict[str, PodPrice]:
        """Share and price of each pod that has a node, by pod uid."""
        return {pod.uid: await self._price(pod, pod.node) for pod in pods if pod.node}

    async def _price(self, pod: PodFacts, node_name: str) -> PodPrice:
        node = await self._node(node_name)
        if node is None:
            return UNKNOWN_PRICE
        price = self._book.price(node.key)
        return PodPrice(
            node_share=node_share(pod.requests, node.capacity),
            dollars_per_hour=price.dollars_per_hour if price else None,
            price_book=price.book if price else None,
        )

    async def _node(self, name: str) -> _Node | None:
        known = self._nodes.get(name)
        if known and monotonic() - known.read_at_seconds < _NODE_KEPT_SECONDS:
            return known
        found = await self._cluster.node(name)
        if found is None:
            return None
        node = _Node(
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
