"""What the rules of NCCL's environment depend on in a node."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kopeck.api.names import GPU_RESOURCE
from kopeck.api.quantities import parse_quantity

_INSTANCE_TYPE_LABELS = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")


@dataclass(frozen=True, kw_only=True)
class NodeFacts:
    """Labels, provider and allocatable resources of a node, as the API server shows them."""

    labels: Mapping[str, str] = field(default_factory=dict)
    provider_id: str = ""
    allocatable: Mapping[str, str] = field(default_factory=dict)

    @property
    def instance_type(self) -> str:
        """The cloud's name of the machine's kind; empty where no label says it."""
        return next(
            (self.labels[label] for label in _INSTANCE_TYPE_LABELS if label in self.labels), ""
        )

    @property
    def gpus(self) -> int:
        return self.count(GPU_RESOURCE)

    def count(self, resource: str) -> int:
        """How many of a resource pods may have; 0 also where the node does not know it."""
        return int(parse_quantity(self.allocatable.get(resource, "0")))


def node_facts(manifest: Mapping[str, Any]) -> NodeFacts:
    """Of a Node's manifest."""
    return NodeFacts(
        labels=manifest["metadata"].get("labels") or {},
        provider_id=manifest.get("spec", {}).get("providerID", ""),
        allocatable=manifest.get("status", {}).get("allocatable") or {},
    )


def node_of_type(instance_type: str) -> NodeFacts:
    """A node of which nothing but its instance type is known."""
    return NodeFacts(labels={_INSTANCE_TYPE_LABELS[0]: instance_type})
