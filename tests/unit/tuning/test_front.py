"""The Pareto front, and the choice from it."""

from hypothesis import given

from kopeck.tuning.front import best_of, dominates, pareto_front
from kopeck.tuning.outcome import Measured
from tests.unit.tuning.builders import any_tuning, measured


@given(any_tuning)
def test_a_dominated_point_is_never_on_the_front_and_every_other_is(points: list[Measured]) -> None:
    front = pareto_front(points)
    for one in points:
        assert (one in front) != any(dominates(other, one) for other in points)


@given(any_tuning)
def test_the_best_point_is_on_the_front(points: list[Measured]) -> None:
    assert best_of(points) in pareto_front(points)


@given(any_tuning)
def test_no_point_dominates_itself_or_one_that_dominates_it(points: list[Measured]) -> None:
    for one in points:
        assert not dominates(one, one)
        assert not any(dominates(one, other) and dominates(other, one) for other in points)


def test_the_fewest_dollars_are_best_even_of_a_slower_step() -> None:
    slow, fast = measured(2.0, dollars_per_sample="0.1"), measured(1.0, dollars_per_sample="0.2")
    assert best_of([fast, slow]) is slow


def test_without_a_price_the_shortest_step_is_best() -> None:
    slow, fast = measured(2.0), measured(1.0)
    assert best_of([slow, fast]) is fast


def test_of_equally_fast_points_the_one_of_less_memory_is_best_and_alone_on_the_front() -> None:
    large, small = measured(peak_bytes=9), measured(peak_bytes=8)
    assert best_of([large, small]) is small
    assert pareto_front([large, small]) == [small]


def test_nothing_is_best_of_nothing() -> None:
    assert best_of([]) is None
    assert pareto_front([]) == []
