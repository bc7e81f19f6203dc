"""Kubernetes quantities such as 500m, 2Gi, 1e3, as exact numbers."""

import re
from decimal import Decimal

# https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
_SUFFIXES = {
    "": Decimal(1),
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    **{suffix: Decimal(1000) ** power for power, suffix in enumerate("kMGTPE", start=1)},
    **{f"{suffix}i": Decimal(1024) ** power for power, suffix in enumerate("KMGTPE", start=1)},
}
_QUANTITY = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)([a-zA-Z]*)")


def parse_quantity(text: str | int) -> Decimal:
    """The number that a quantity stands for. Raises ValueError for what is none."""
    match = _QUANTITY.fullmatch(str(text))
    if match is None or match[2] not in _SUFFIXES:
        raise ValueError(f"{text} is no quantity; write one such as 500m, 2 or 4Gi")
    return Decimal(match[1]) * _SUFFIXES[match[2]]
