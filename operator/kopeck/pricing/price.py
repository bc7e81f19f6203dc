"""A price, and the facts of a node that it depends on."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar, Literal

from pydantic import ConfigDict
from pydantic.alias_generators import to_camel

CapacityType = Literal["on-demand", "spot", "reserved", "block", "flex", "unknown"]

INSTANCE_TYPE_LABEL = "node.kubernetes.io/instance-type"
_REGION = "topology.kubernetes.io/region"
_ZONE = "topology.kubernetes.io/zone"

# Label values by cloud, in the sources' own words; see the clouds' and Karpenter's documentation.
_CAPACITY_LABELS: Mapping[str, Mapping[str, CapacityType]] = {
    "karpenter.k8s.aws/capacity-reservation-type": {
        "default": "reserved",
        "capacity-block": "block",
    },
    "karpenter.sh/capacity-type": {
        "on-demand": "on-demand",
        "spot": "spot",
        "reserved": "reserved",
    },
    "eks.amazonaws.com/capacityType": {
        "ON_DEMAND": "on-demand",
        "SPOT": "spot",
        "CAPACITY_BLOCK": "block",
    },
    "cloud.google.com/gke-spot": {"true": "spot"},
    "cloud.google.com/gke-preemptible": {"true": "spot"},
    "cloud.google.com/gke-provisioning": {"standard": "on-demand", "spot": "spot"},
    "kubernetes.azure.com/scalesetpriority": {"spot": "spot", "regular": "on-demand"},
}


@dataclass(frozen=True)
class NodeKey:
    """What a price is looked up by; None where the node does not say."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(alias_generator=to_camel)
    """Of its JSON in a ledger."""

    instance_type: str | None = None
    region: str | None = None
    zone: str | None = None
    capacity_type: CapacityType = "unknown"

    def __str__(self) -> str:
        """In the words of a price book's row."""
        said = {"instanceType": self.instance_type, "region": self.region, "zone": self.zone}
        labels = [f"{name} {value or '(no label)'}" for name, value in said.items()]
        return ", ".join([*labels, f"capacityType {self.capacity_type}"])


@dataclass(frozen=True)
class Price:
    """Dollars an hour of a whole node, and the id of the price book that says so."""

    dollars_per_hour: Decimal
    book: str


def node_key(labels: Mapping[str, str]) -> NodeKey:
    """The key of a node by its well-known labels."""
    return NodeKey(
        instance_type=labels.get(INSTANCE_TYPE_LABEL),
        region=labels.get(_REGION),
        zone=labels.get(_ZONE),
        capacity_type=_capacity_type(labels),
    )


def _capacity_type(labels: Mapping[str, str]) -> CapacityType:
    """On-demand without any label: a node that nobody marked is nobody's bargain.

    A label whose value is not in the table is unknown, never silently on-demand.
    """
    for label, meanings in _CAPACITY_LABELS.items():
        if label in labels:
            return meanings.get(labels[label], "unknown")
    return "on-demand"
