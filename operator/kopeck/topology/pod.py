"""What a pod already says: the user's own settings, resources, claims and mounts."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kopeck.api.names import TRAINER_CONTAINER
from kopeck.api.quantities import parse_quantity
from kopeck.topology.node import GPU_RESOURCE


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


def pod_view(manifest: Mapping[str, Any]) -> PodView:
    """Of a pod's manifest, before it is created."""
    spec = manifest["spec"]
    trainer = next(each for each in spec["containers"] if each["name"] == TRAINER_CONTAINER)
    resources = trainer.get("resources") or {}
    amounts = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
    return PodView(
        gpus=int(parse_quantity(amounts.get(GPU_RESOURCE, 0))),
        environment={each["name"]: each.get("value", "") for each in trainer.get("env") or []},
        resources=frozenset(amounts),
        mount_paths=frozenset(each["mountPath"] for each in trainer.get("volumeMounts") or []),
        annotations=frozenset(manifest["metadata"].get("annotations") or {}),
        containers=frozenset(_names(spec)),
        claims=len(resources.get("claims") or []),
        is_on_host_network=bool(spec.get("hostNetwork")),
    )


def _names(spec: Mapping[str, Any]) -> Iterator[str]:
    for kind in ("containers", "initContainers"):
        for container in spec.get(kind) or []:
            yield container["name"]
