"""What an API server makes of a JSON merge patch."""

from typing import Any


def merge_patched(target: Any, patch: Any) -> Any:
    """The target after the patch, by RFC 7396."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patched(result.get(key), value)
    return result
