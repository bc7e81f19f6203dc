"""Dollars per sample: unknown where there is nothing to divide by."""

from decimal import Decimal

import pytest

from kopeck.cost.unit_cost import all_in, marginal


def test_all_in_is_what_was_spent_over_the_samples_kept() -> None:
    assert all_in(Decimal("24.58"), 1000) == Decimal("0.02458")


def test_marginal_is_the_present_rate_over_the_present_speed() -> None:
    assert marginal(Decimal(36), 2.5) == Decimal("0.004")


@pytest.mark.parametrize("samples", [0, None])
def test_all_in_is_absent_without_a_sample_that_is_kept(samples: int | None) -> None:
    assert all_in(Decimal(5), samples) is None


@pytest.mark.parametrize("speed", [0, 0.0, -1.0, None])
def test_marginal_is_absent_without_speed(speed: float | None) -> None:
    assert marginal(Decimal(5), speed) is None


def test_both_are_absent_where_dollars_are_unknown() -> None:
    assert all_in(None, 100) is None
    assert marginal(None, 2.5) is None


def test_samples_that_cost_nothing_so_far_cost_zero() -> None:
    assert all_in(Decimal(0), 100) == 0


def test_a_speed_is_taken_by_its_shortest_decimal_and_not_by_its_binary_fraction() -> None:
    assert marginal(Decimal("0.36"), 0.1) == Decimal("0.001")
