"""The devices that a pod must request to reach the fabric: EFA, RDMA, huge pages."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from kopeck.api.quantities import parse_quantity
from kopeck.topology.node import NodeFacts

EFA_RESOURCE = "vpc.amazonaws.com/efa"
RDMA_PREFIX = "rdma/"
HUGE_PAGES_RESOURCE = "hugepages-2Mi"

_MEBI = Decimal(1024) ** 2
# Of a pod with all devices: https://docs.aws.amazon.com/eks/latest/userguide/node-efa.html
_EFA_HUGE_PAGES_BYTES = 5120 * _MEBI
_HUGE_PAGE_BYTES = 2 * _MEBI


@dataclass(frozen=True)
class Request:
    """A resource that the training container requests, its limit the same, and why."""

    resource: str
    quantity: str
    reason: str


def rdma_resources(allocatable: Mapping[str, str]) -> list[str]:
    """Names under rdma/ of which the node has any."""
    return sorted(
        name
        for name, amount in allocatable.items()
        if name.startswith(RDMA_PREFIX) and parse_quantity(amount) > 0
    )


def efa_request(node: NodeFacts, gpus: int) -> Request | None:
    """The pod's part of the node's EFA interfaces; None where the node offers none."""
    offered = node.count(EFA_RESOURCE)
    if not offered:
        return None
    wanted = max(1, offered * gpus // max(node.gpus, gpus))
    reason = f"{gpus} of {max(node.gpus, gpus)} GPUs, and the node has {offered} EFA interfaces"
    return Request(EFA_RESOURCE, str(wanted), reason)


def huge_pages_request(node: NodeFacts, gpus: int) -> Request | None:
    """Huge pages for EFA's buffers, where the node has them; without, it does with small ones."""
    offered = parse_quantity(node.allocatable.get(HUGE_PAGES_RESOURCE, "0"))
    share = Decimal(gpus) / max(node.gpus, gpus)
    pages = min(_EFA_HUGE_PAGES_BYTES, offered) * share // _HUGE_PAGE_BYTES
    if not pages:
        return None
    mebibytes = pages * _HUGE_PAGE_BYTES // _MEBI
    return Request(
        HUGE_PAGES_RESOURCE, f"{mebibytes}Mi", "the EFA provider keeps its buffers there"
    )


def rdma_request(node: NodeFacts, resource: str, gpus: int) -> Request:
    """One for each NIC beside the pod's GPUs, or 1 where all pods of a node share its NICs.

    A device plugin that shares announces a number of pods, far more than a machine has NICs.
    """
    offered = node.count(resource)
    if "shared" in resource or not node.gpus or offered > 2 * node.gpus:
        return Request(resource, "1", f"the node's pods share its NICs ({resource}: {offered})")
    wanted = max(1, offered * gpus // max(node.gpus, gpus))
    reason = f"{gpus} of {max(node.gpus, gpus)} GPUs, and the node has {offered} NICs"
    return Request(resource, str(wanted), reason)
