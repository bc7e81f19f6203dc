"""The nodes that could hold a pod of a job, as far as its template and its requests say.

Pods are made before they have a node, so what they need of it is read from those that they may
get. As the scheduler's filters, of which the others depend on the moment:
https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kopeck.api.json_shapes import mapping, mappings, strings
from kopeck.api.quantities import parse_quantity
from kopeck.topology.node import NodeFacts, node_facts
from kopeck.topology.platform import platform_of
from kopeck.topology.resources import HUGE_PAGES_RESOURCE

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_KEEPS_PODS_AWAY = ("NoSchedule", "NoExecute")
# Set by the node controller for as long as a node is in trouble or cordoned: no kind of node.
_OF_THE_MOMENT = "node.kubernetes.io/"


@dataclass(frozen=True, slots=True)
class GpuNode:
    """A node with GPUs: its facts, and what keeps pods away from it."""

    name: str
    facts: NodeFacts
    kind: Hashable
    """Nodes of one kind need the same of a pod."""
    taints: tuple[Mapping[str, str], ...] = ()
    is_cordoned: bool = False

    @property
    def is_available(self) -> bool:
        """Whether the cluster itself lets new pods onto it now."""
        troubles = (taint["key"].startswith(_OF_THE_MOMENT) for taint in self.taints)
        return not self.is_cordoned and not any(troubles)


def gpu_node(manifest: Mapping[str, Any]) -> GpuNode | None:
    """Of a Node's manifest; None where it offers no GPUs, as most nodes of a large cluster."""
    facts = node_facts(manifest)
    if not facts.gpus:
        return None
    spec = manifest.get("spec", {})
    return GpuNode(
        name=manifest["metadata"]["name"],
        facts=facts,
        kind=(platform_of(facts), facts.instance_type, _devices(facts)),
        taints=tuple(spec.get("taints") or ()),
        is_cordoned=bool(spec.get("unschedulable")),
    )


def _devices(facts: NodeFacts) -> frozenset[tuple[str, str]]:
    """All but cpu, memory and such, of which machines of one type differ by some bytes."""
    return frozenset(
        (name, amount)
        for name, amount in facts.allocatable.items()
        if "/" in name or name == HUGE_PAGES_RESOURCE
    )


def candidates(
    pod_spec: Mapping[str, Any], requested: Mapping[str, Any], nodes: Iterable[GpuNode]
) -> list[GpuNode]:
    """Nodes that suit a pod's selectors, tolerations and the resources that one container asks for.

    Those that take no new pods at this moment count only where no other node suits: they still
    tell what kind of node the pod will get.
    """
    suitable = [
        node
        for node in nodes
        if _is_selected(pod_spec, node)
        and _is_tolerated(pod_spec, requested, node)
        and _offers(node, requested)
    ]
    return [node for node in suitable if node.is_available] or suitable


def _is_selected(pod_spec: Mapping[str, Any], node: GpuNode) -> bool:
    labels = node.facts.labels
    wanted = mapping(pod_spec.get("nodeSelector"))
    if pod_spec.get("nodeName") not in (None, "", node.name):
        return False
    if any(labels.get(label) != value for label, value in wanted.items()):
        return False
    affinity = mapping(mapping(pod_spec.get("affinity")).get("nodeAffinity"))
    if _REQUIRED not in affinity:
        return True
    terms = mappings(mapping(affinity[_REQUIRED]).get("nodeSelectorTerms"))
    return any(_term_matches(term, node) for term in terms)


def _term_matches(term: Mapping[str, Any], node: GpuNode) -> bool:
    """All its expressions together; an empty term matches no node."""
    by_label = mappings(term.get("matchExpressions"))
    by_field = mappings(term.get("matchFields"))
    fields = {"metadata.name": node.name}
    return bool(by_label or by_field) and all(
        [
            *(_expression_matches(each, node.facts.labels) for each in by_label),
            *(_expression_matches(each, fields) for each in by_field),
        ]
    )


def _expression_matches(expression: Mapping[str, Any], values: Mapping[str, str]) -> bool:
    value = values.get(str(expression.get("key")))
    operands = strings(expression.get("values"))
    match expression.get("operator"):
        case "In":
            return value in operands
        case "NotIn":
            return value not in operands
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" as operator:
            return _is_beyond(value, operands, operator)
        case _:
            return False


def _is_beyond(value: str | None, operands: Sequence[str], operator: str) -> bool:
    try:
        (operand,) = operands
        number, bound = int(value or ""), int(operand)
    except ValueError:
        return False
    return number > bound if operator == "Gt" else number < bound


def _is_tolerated(pod_spec: Mapping[str, Any], requested: Mapping[str, Any], node: GpuNode) -> bool:
    """A taint named like a requested resource is tolerated too: clouds let admission add that.

    As https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#extendedresourcetoleration
    """
    tolerations = mappings(pod_spec.get("tolerations"))
    return all(
        taint["key"] in requested
        or any(_tolerates(toleration, taint) for toleration in tolerations)
        for taint in node.taints
        if taint["effect"] in _KEEPS_PODS_AWAY and not taint["key"].startswith(_OF_THE_MOMENT)
    )


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, str]) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    key, operator = toleration.get("key") or None, toleration.get("operator") or "Equal"
    if operator == "Exists":
        return key in (None, taint["key"])
    same_value = (toleration.get("value") or "") == taint.get("value", "")
    return operator == "Equal" and key == taint["key"] and same_value


def _offers(node: GpuNode, requested: Mapping[str, Any]) -> bool:
    """Whether it could hold the pod if it were empty; what is no quantity is not judged here."""
    for resource, amount in requested.items():
        try:
            wanted = parse_quantity(amount)
        except ValueError:
            continue
        if wanted > parse_quantity(node.facts.allocatable.get(resource, "0")):
            return False
    return True
