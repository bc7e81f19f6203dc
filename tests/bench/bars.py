"""Bars that a benchmark holds, or does not."""

import operator
from typing import Any

_RELATIONS = {">=": operator.ge, "<=": operator.le, "==": operator.eq}


def bar(value: float, relation: str, bound: float) -> dict[str, Any]:
    """The value, rounded to five digits, and whether it is where it should be."""
    held = _RELATIONS[relation](value, bound)
    return {"value": float(f"{value:.5g}"), "op": relation, "bar": bound, "held": held}
