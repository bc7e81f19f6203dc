"""Which part of its node a pod holds."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from kopeck.api.quantities import parse_quantity
from kopeck.pricing.book import CPU_NODE_WEIGHTS, GPU_NODE_WEIGHTS

_GPU_RESOURCE_NAMES = ("nvidia.com/gpu", "amd.com/gpu")
# Their other resources are parts of GPUs, such as MIG slices: not weighed yet, so unknown.
_GPU_VENDORS = ("nvidia.com/", "amd.com/", "gpu.intel.com/", "habana.ai/")


@dataclass(frozen=True)
class NodeCapacity:
    """What a node has: cores, bytes, and GPUs by the name of their resource."""

    cpu: Decimal
    memory: Decimal
    gpus: Mapping[str, Decimal]


def node_capacity(capacity: Mapping[str, str]) -> NodeCapacity:
    """Of a node's `.status.capacity`."""
    return NodeCapacity(
        cpu=parse_quantity(capacity.get("cpu", "0")),
        memory=parse_quantity(capacity.get("memory", "0")),
        gpus={
            name: parse_quantity(capacity[name])
            for name in _GPU_RESOURCE_NAMES
            if parse_quantity(capacity.get(name, "0")) > 0
        },
    )


def effective_requests(pod_spec: Mapping[str, Any]) -> dict[str, Decimal]:
    """What the scheduler reserves for a pod, by resource.

    The larger of the start (each init container beside the sidecars before it) and the run (all
    containers and sidecars), plus overhead; pod-level requests come first. As in
    https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/#resource-sharing-within-containers
    """
    running = _sum(_requests(container) for container in pod_spec.get("containers", []))
    sidecars: dict[str, Decimal] = {}
    starting: dict[str, Decimal] = {}
    for container in pod_spec.get("initContainers", []):
        alone = _sum([sidecars, _requests(container)])
        if container.get("restartPolicy") == "Always":
            sidecars = alone
        starting = _largest(starting, alone)
    held = _largest(starting, _sum([running, sidecars]))
    held |= _requests(pod_spec)
    return _sum([held, _quantities(pod_spec.get("overhead", {}))])


def node_share(requests: Mapping[str, Decimal], capacity: NodeCapacity) -> Decimal | None:
    """The part of its node's price that a pod pays, 0-1.

    Fixed weights that sum to 1 times requested over capacity, so that shares never exceed 1 and
    no stranger's pod changes a price. None where nothing that the pod requests has a weight, or
    a part of a GPU has none: such a pod is unknown, not free.
    """
    if any(name.startswith(_GPU_VENDORS) and name not in capacity.gpus for name in requests):
        return None
    weights = GPU_NODE_WEIGHTS if capacity.gpus else CPU_NODE_WEIGHTS
    gpus = sum((requests.get(name, Decimal(0)) for name in capacity.gpus), Decimal(0))
    share = (
        weights.gpu * _ratio(gpus, sum(capacity.gpus.values(), Decimal(0)))
        + weights.cpu * _ratio(requests.get("cpu", Decimal(0)), capacity.cpu)
        + weights.memory * _ratio(requests.get("memory", Decimal(0)), capacity.memory)
    )
    return min(share, Decimal(1)) if share > 0 else None


def _ratio(part: Decimal, whole: Decimal) -> Decimal:
    return part / whole if whole else Decimal(0)


def _requests(container: Mapping[str, Any]) -> dict[str, Decimal]:
    """Requests of a container; a limit without a request is one, as the API server defaults it."""
    resources = container.get("resources") or {}
    return _quantities({**(resources.get("limits") or {}), **(resources.get("requests") or {})})


def _quantities(resources: Mapping[str, str]) -> dict[str, Decimal]:
    return {name: parse_quantity(amount) for name, amount in resources.items()}


def _sum(each: Iterable[Mapping[str, Decimal]]) -> dict[str, Decimal]:
    total: dict[str, Decimal] = {}
    for requests in each:
        for name, amount in requests.items():
            total[name] = total.get(name, Decimal(0)) + amount
    return total


def _largest(one: Mapping[str, Decimal], other: Mapping[str, Decimal]) -> dict[str, Decimal]:
    return {
        name: max(one.get(name, Decimal(0)), other.get(name, Decimal(0)))
        for name in one.keys() | other.keys()
    }
