"""Kubernetes quantities as exact numbers."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopeck.api.quantities import parse_quantity


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("500m", "0.5"),
        ("2", "2"),
        (2, "2"),
        ("0.1", "0.1"),
        (".5", "0.5"),
        ("1.", "1"),
        ("4Gi", str(4 * 2**30)),
        ("1Ki", "1024"),
        ("1k", "1000"),
        ("3M", "3000000"),
        ("1E", "1000000000000000000"),
        ("1Ei", str(2**60)),
        ("1e3", "1000"),
        ("1E3", "1000"),
        ("12e-1", "1.2"),
        ("100n", "0.0000001"),
        ("7u", "0.000007"),
        ("-1", "-1"),
        ("+1", "1"),
    ],
)
def test_a_quantity_is_the_number_that_it_stands_for(text: str | int, number: str) -> None:
    assert parse_quantity(text) == Decimal(number)


@pytest.mark.parametrize("text", ["", "Gi", "1 Gi", "1.2.3", ".", "-", "1KI", "ten", "1e", "0x10"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no quantity; write one such as 500m, 2 or 4Gi"):
        parse_quantity(text)


@given(st.text(max_size=12))
def test_any_text_is_a_number_or_refused(text: str) -> None:
    try:
        assert parse_quantity(text).is_finite()
    except ValueError as refused:
        assert "is no quantity" in str(refused)  # noqa: PT017  either outcome is right
