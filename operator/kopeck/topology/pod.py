"""What a pod already says: the user's own settings, resources, claims and mounts."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kopeck.api.json_shapes import mapping, mappings
from kopeck.api.names import GPU_RESOURCE, TRAINER_CONTAINER
from kopeck.api.quantities import parse_quantity


@dataclass(frozen=True, kw_only=True)
class PodView:
    """A worker pod as the user's template left it."""

    gpus: int = 0
    environment: Mapping[str, str] = field(default_factory=dict)
    """Of the training container; a value that is taken from elsewhere is an empty string."""
    resources: frozenset[str] = frozenset()
    """Names that the training container requests or limits."""
    mount_paths: frozenset[str] = frozenset()
    """Of the training container."""
    annotations: frozenset[str] = frozenset()
    containers: frozenset[str] = frozenset()
    """Names of all containers, init containers too."""
    claims: int = 0
    """Devices that the training container claims by dynamic resource allocation."""
    is_on_host_network: bool = False

    def sets(self, variable: str) -> bool:
        return variable in self.environment

    def mounts(self, path: str) -> bool:
        """Whether a volume is mounted at the path or at a folder that it lies in."""
        return any(f"{path}/".startswith(f"{each.rstrip('/')}/") for each in self.mount_paths)


def requested_amounts(container: Mapping[str, Any]) -> dict[str, Any]:
    """What a container requests or limits, by resource."""
    resources = mapping(container.get("resources"))
    return {**mapping(resources.get("requests")), **mapping(resources.get("limits"))}


def training_container(pod_spec: Mapping[str, Any]) -> Mapping[str, Any]:
    return next(each for each in pod_spec["containers"] if each["name"] == TRAINER_CONTAINER)


def pod_view(manifest: Mapping[str, Any]) -> PodView:
    """Of a pod's manifest, before it is created: its parts may have any shape."""
    spec = manifest["spec"]
    trainer = training_container(spec)
    amounts = requested_amounts(trainer)
    return PodView(
        gpus=_whole(amounts.get(GPU_RESOURCE)),
        environment={
            str(each.get("name")): str(each.get("value", ""))
            for each in mappings(trainer.get("env"))
        },
        resources=frozenset(amounts),
        mount_paths=frozenset(
            str(each.get("mountPath")) for each in mappings(trainer.get("volumeMounts"))
        ),
        annotations=frozenset(mapping(manifest["metadata"].get("annotations"))),
        containers=frozenset(_names(spec)),
        claims=len(mappings(mapping(trainer.get("resources")).get("claims"))),
        is_on_host_network=spec.get("hostNetwork") is True,
    )


def _whole(amount: Any) -> int:
    """0 for what is no quantity: the API server refuses the pod and says so."""
    try:
        return int(parse_quantity(amount))
    except ValueError:
        return 0


def _names(spec: Mapping[str, Any]) -> Iterator[str]:
    for kind in ("containers", "initContainers"):
        for container in mappings(spec.get(kind)):
            yield str(container.get("name"))
