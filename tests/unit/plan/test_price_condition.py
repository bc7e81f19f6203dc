"""Whether the price of all that a job holds is known, and what to do if it is not."""

from kopeck.api.status import Condition
from kopeck.cost.ledger import Ledger, Segment
from kopeck.plan.price_condition import with_price_condition
from tests.builders import T0, a_ledger, a_segment


def price_known(*segments: Segment) -> Condition:
    (condition,) = with_price_condition([], a_ledger(*segments), T0)
    return condition


def test_nothing_is_said_before_anything_is_held() -> None:
    assert with_price_condition([], Ledger(), T0) == []


def test_a_known_price_names_its_books() -> None:
    known = price_known(a_segment("one", price_book="b"), a_segment("two", price_book="a"))
    assert (known.status, known.reason, known.message) == ("True", "Priced", "by price book a, b")


def test_a_node_without_price_is_named_with_what_to_do() -> None:
    known = price_known(a_segment("one"), a_segment("two", node="gpu-7", dollars_per_hour=None))
    assert (known.status, known.reason) == ("False", "NoPrice")
    assert known.message == "no price for node gpu-7; add its instance type to the price book"


def test_a_pod_without_a_share_is_told_apart_from_a_node_without_a_price() -> None:
    known = price_known(a_segment(node_share=None))
    assert (known.status, known.reason) == ("False", "NoShare")
    assert "spec.workers.resources" in known.message
