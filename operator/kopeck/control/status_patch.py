"""The difference of two statuses as a JSON merge patch."""

from collections.abc import Mapping
from typing import Any

from kopeck.api.status import TrainingJobStatus


def status_patch(before: Mapping[str, Any], after: TrainingJobStatus) -> dict[str, Any]:
    """What to send so that `before` becomes `after`; empty if nothing changed."""
    return _difference(before, after.model_dump(by_alias=True, exclude_none=True))


def _difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    patch: dict[str, Any] = dict.fromkeys(before.keys() - after.keys())
    for key, value in after.items():
        known = before.get(key)
        if isinstance(value, dict) and isinstance(known, Mapping):
            if nested := _difference(known, value):
                patch[key] = nested
        elif known != value:
            patch[key] = value
    return patch
