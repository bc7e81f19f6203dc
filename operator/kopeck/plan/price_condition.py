"""Whether the price of all that a job holds is known."""

from collections.abc import Sequence
from datetime import datetime
from typing import get_args

from kopeck.api.errors import LedgerError
from kopeck.api.status import Condition
from kopeck.cost.ledger import Ledger
from kopeck.plan.conditions import with_condition
from kopeck.pricing.price import INSTANCE_TYPE_LABEL, CapacityType, NodeKey


def with_price_condition(
    conditions: Sequence[Condition], ledger: Ledger | LedgerError, now: datetime
) -> list[Condition]:
    """The conditions with PriceKnown; without it before anything is charged."""
    if isinstance(ledger, LedgerError):
        return with_condition(conditions, "PriceKnown", "False", "LedgerDamaged", str(ledger), now)
    if not ledger.segments:
        return [each for each in conditions if each.type != "PriceKnown"]
    unknown = [each for each in ledger.segments.values() if each.hourly_rate is None]
    if not unknown:
        books = sorted({each.price_book or "" for each in ledger.segments.values()})
        said = f"by price book {', '.join(books)}"
        return with_condition(conditions, "PriceKnown", "True", "Priced", said, now)
    if unpriced := [each for each in unknown if each.dollars_per_hour is None]:
        first = min(unpriced, key=lambda each: each.node)
        said = f"no price for node {first.node}: {_why_unpriced(first.price_key)}"
        return with_condition(conditions, "PriceKnown", "False", "NoPrice", said, now)
    said = "pods request nothing that a node's price is shared by; set spec.workers.resources"
    return with_condition(conditions, "PriceKnown", "False", "NoShare", said, now)


def _why_unpriced(key: NodeKey | None) -> str:
    if key is None:
        return "it was gone before its labels were read, so what it held stays without a price"
    if key.instance_type is None:
        return f"it has no label {INSTANCE_TYPE_LABEL}; set it to the price book's instanceType"
    if key.capacity_type == "unknown":
        words = ", ".join(each for each in get_args(CapacityType) if each != "unknown")
        return f"its capacity label has a value that is not known as one of {words}; correct it"
    return f"the price book has no row for {key}; add one"
