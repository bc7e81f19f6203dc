"""Merging a user's partial pod spec over ours, by the keys of a strategic merge."""

from collections.abc import Mapping, Sequence
from typing import Any

from kopeck.api.errors import SpecError

# Lists that merge by a key of their items; all others are replaced as a whole. As the pod's own
# patchMergeKey: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/
_MERGE_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "env": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "ports": "containerPort",
    "imagePullSecrets": "name",
}


def merged(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    """`ours` with `theirs` merged over it; neither is changed.

    Raises SpecError where a list of theirs cannot be merged by key.
    """
    result = dict(ours)
    for field, value in theirs.items():
        before = result.get(field)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            result[field] = merged(before, value)
        elif isinstance(before, Sequence) and field in _MERGE_KEYS:
            result[field] = _merged_list(before, value, field)
        else:
            result[field] = value
    return result


def _merged_list(
    ours: Sequence[Mapping[str, Any]], theirs: Any, field: str
) -> list[Mapping[str, Any]]:
    key = _MERGE_KEYS[field]
    _refuse_without_key(theirs, field, key)
    result: dict[Any, Mapping[str, Any]] = {item[key]: item for item in ours}
    for item in theirs:
        result[item[key]] = merged(result.get(item[key], {}), item)
    return list(result.values())


def _refuse_without_key(theirs: Any, field: str, key: str) -> None:
    where = "spec.workers.template.spec"
    if not isinstance(theirs, list):
        raise SpecError(where, f"{field}: is no list", f"write a list of items with a {key}")
    if not all(isinstance(item, Mapping) and key in item for item in theirs):
        raise SpecError(where, f"{field}: an item has no {key}", f"give each one a {key}")
