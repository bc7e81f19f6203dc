"""The topology file that a user brings in a ConfigMap: checked before any pod could stop at it."""

from collections.abc import Mapping

from kopeck.api.errors import SpecError
from kopeck.api.nccl import ConfigMapKey
from kopeck.topology.check import check, violations


class TopologyFileError(SpecError):
    """The ConfigMap is missing or holds no file that NCCL reads as it is written."""

    def __init__(self, wrong: str, instead: str) -> None:
        super().__init__("spec.nccl.topologyConfigMap", wrong, instead)


def own_topology(own: ConfigMapKey, data: Mapping[str, str] | None) -> str:
    """The file's text. `data` is the ConfigMap's, None if there is none of that name.

    Raises TopologyFileError with the first line that keeps no rule of NCCL's reader.
    """
    if data is None:
        wrong = f"there is no ConfigMap {own.name} in the job's namespace"
        raise TopologyFileError(wrong, "create it, or name another one")
    if own.key not in data:
        keys = f"use one of its keys: {', '.join(sorted(data))}" if data else "write the file there"
        raise TopologyFileError(f"ConfigMap {own.name} has no key {own.key}", keys)
    content = data[own.key]
    if wrong_places := violations(check(content.encode())):
        first = wrong_places[0]
        wrong = f"{own.name}/{own.key}, line {first.line}: {first.wrong}"
        raise TopologyFileError(wrong, f"{first.instead} (kopeck topology check tells all)")
    return content
