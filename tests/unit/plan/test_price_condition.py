"""Whether the price of all that a job holds is known, and what to do if it is not."""

import pytest

from kopeck.api.errors import LedgerError
from kopeck.api.status import Condition
from kopeck.cost.ledger import Ledger, Segment
from kopeck.plan.price_condition import with_price_condition
from kopeck.pricing.price import NodeKey
from tests.builders import T0, a_ledger, a_segment

DAMAGED = LedgerError("ledger team/one", "is no JSON", "put back what was there")


def price_known(*segments: Segment) -> Condition:
    (condition,) = with_price_condition([], a_ledger(*segments), T0)
    return condition


def test_nothing_is_said_before_anything_is_held() -> None:
    assert with_price_condition([], Ledger(), T0) == []


def test_nothing_is_said_any_more_once_nothing_is_held_by_a_new_ledger() -> None:
    damaged = with_price_condition([], DAMAGED, T0)
    assert with_price_condition(damaged, Ledger(), T0) == []


def test_of_a_damaged_ledger_the_price_is_unknown_and_it_is_said_what_to_do() -> None:
    (known,) = with_price_condition([], DAMAGED, T0)
    assert (known.status, known.reason) == ("False", "LedgerDamaged")
    assert known.message == "ledger team/one: is no JSON; put back what was there"


def test_a_known_price_names_its_books() -> None:
    known = price_known(a_segment("one", price_book="b"), a_segment("two", price_book="a"))
    assert (known.status, known.reason, known.message) == ("True", "Priced", "by price book a, b")


@pytest.mark.parametrize(
    ("key", "why"),
    [
        (
            NodeKey("p5.48xlarge", "us-east-1", "us-east-1a", "spot"),
            (
                "the price book has no row for instanceType p5.48xlarge, region us-east-1, "
                "zone us-east-1a, capacityType spot; add one"
            ),
        ),
        (
            NodeKey("p5.48xlarge", capacity_type="on-demand"),
            (
                "the price book has no row for instanceType p5.48xlarge, region (no label), "
                "zone (no label), capacityType on-demand; add one"
            ),
        ),
        (
            NodeKey(region="us-east-1", capacity_type="on-demand"),
            (
                "it has no label node.kubernetes.io/instance-type; set it to the price book's "
                "instanceType"
            ),
        ),
        (
            NodeKey("p5.48xlarge", capacity_type="unknown"),
            (
                "its capacity label has a value that is not known as one of on-demand, spot, "
                "reserved, block, flex; correct it"
            ),
        ),
        (
            None,
            "it was gone before its labels were read, so what it held stays without a price",
        ),
    ],
)
def test_a_node_without_price_is_named_with_what_was_looked_up_and_what_to_do(
    key: NodeKey | None, why: str
) -> None:
    unpriced = a_segment("two", node="gpu-7", dollars_per_hour=None, price_key=key)
    later = a_segment("three", node="gpu-8", dollars_per_hour=None)
    known = price_known(a_segment("one"), later, unpriced)
    assert (known.status, known.reason) == ("False", "NoPrice")
    assert known.message == f"no price for node gpu-7: {why}"


def test_a_pod_without_a_share_is_told_apart_from_a_node_without_a_price() -> None:
    known = price_known(a_segment(node_share=None))
    assert (known.status, known.reason) == ("False", "NoShare")
    assert "spec.workers.resources" in known.message
