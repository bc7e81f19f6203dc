"""Reading JSON of which nobody has checked the shape, such as the open parts of a template."""

from collections.abc import Mapping
from typing import Any


def mapping(value: Any) -> Mapping[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def mappings(value: Any) -> list[Mapping[str, Any]]:
    """The objects of a list; empty for anything else."""
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def strings(value: Any) -> list[str]:
    """The strings of a list; empty for anything else."""
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []
