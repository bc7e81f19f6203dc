"""Money as text."""

import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopeck.api.status import MONEY_PATTERN
from kopeck.cost.dollars import exact_dollars, readable_dollars, unit_dollars

amounts = st.decimals(0, 10**12, allow_nan=False, places=12)


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        ("24.58", "24.58"),
        ("24.5800", "24.58"),
        ("100", "100"),
        ("1E+2", "100"),
        ("0", "0"),
        ("0.0000000015", "0.000000002"),
        ("0.0000000025", "0.000000002"),
        ("0.0000000004", "0"),
        ("-0.5", "-0.5"),
    ],
)
def test_a_total_is_plain_and_rounded_to_a_nanodollar(amount: str, text: str) -> None:
    assert exact_dollars(Decimal(amount)) == text


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        ("0.0000125", "0.0000125"),
        ("0.00001234567894", "0.0000123456789"),
        ("1234567891.4", "1234567890"),
        ("2", "2"),
        ("0", "0"),
    ],
)
def test_a_unit_cost_keeps_nine_significant_digits(amount: str, text: str) -> None:
    assert unit_dollars(Decimal(amount)) == text


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        ("1234567.891", "$1,234,567.89"),
        ("10", "$10.00"),
        ("9.996", "$10"),
        ("9.8766", "$9.88"),
        ("0.012345", "$0.0123"),
        ("0.0000125", "$0.0000125"),
        ("0", "$0"),
    ],
)
def test_a_table_shows_cents_from_ten_dollars_and_three_digits_below(
    amount: str, text: str
) -> None:
    assert readable_dollars(Decimal(amount)) == text


@given(amounts)
def test_whatever_the_api_gets_fits_its_pattern(amount: Decimal) -> None:
    assert re.fullmatch(MONEY_PATTERN, exact_dollars(amount))
    assert re.fullmatch(MONEY_PATTERN, unit_dollars(amount))


@given(amounts)
def test_a_total_is_never_off_by_more_than_half_a_nanodollar(amount: Decimal) -> None:
    assert abs(Decimal(exact_dollars(amount)) - amount) <= Decimal("0.5e-9")
