"""Bars that a benchmark holds, or does not."""

import operator
from collections.abc import Mapping
from typing import Any

_RELATIONS = {">=": operator.ge, "<=": operator.le, "==": operator.eq}


def bar(value: float, relation: str, bound: float) -> dict[str, Any]:
    """The value, rounded to five digits, and whether it is where it should be."""
    held = _RELATIONS[relation](value, bound)
    return {"value": float(f"{value:.5g}"), "op": relation, "bar": bound, "held": held}


def sentences(bars: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Each bar as a line for who reads along: its value, what it should be, whether it is held."""
    return [
        f"{name.replace('_', ' ')}: {each['value']:g}, to be {each['op']} {each['bar']:g}: "
        + ("held" if each["held"] else "NOT HELD")
        for name, each in bars.items()
    ]
