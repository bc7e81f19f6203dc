"""Whether the price of all that a job holds is known."""

from collections.abc import Sequence
from datetime import datetime

from kopeck.api.status import Condition
from kopeck.cost.ledger import Ledger
from kopeck.plan.conditions import with_condition


def with_price_condition(
    conditions: Sequence[Condition], ledger: Ledger, now: datetime
) -> list[Condition]:
    """The conditions with PriceKnown; unchanged before anything is charged."""
    if not ledger.segments:
        return list(conditions)
    unknown = [each for each in ledger.segments.values() if each.hourly_rate is None]
    if not unknown:
        books = sorted({each.price_book or "" for each in ledger.segments.values()})
        said = f"by price book {', '.join(books)}"
        return with_condition(conditions, "PriceKnown", "True", "Priced", said, now)
    if unpriced := sorted({each.node for each in unknown if each.dollars_per_hour is None}):
        said = f"no price for node {unpriced[0]}; add its instance type to the price book"
        return with_condition(conditions, "PriceKnown", "False", "NoPrice", said, now)
    said = "pods request nothing that a node's price is shared by; set spec.workers.resources"
    return with_condition(conditions, "PriceKnown", "False", "NoShare", said, now)
