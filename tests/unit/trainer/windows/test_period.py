"""How often windows are recorded: as often as is asked, as far as they stay cheap."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopeck_trainer.windows.period import first_seconds, period_seconds
from kopeck_trainer.windows.wish import WindowWish

SECONDS = st.floats(0, 1e6)


class Time:
    seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


@pytest.mark.parametrize(
    ("asked", "cost", "is_on_gpu", "period"),
    [
        (600, 0.0, True, 600),
        (600, 2.9, True, 600),
        (600, 3.5, True, 700),
        (60, 0.1, True, 60),
        (10, 0.1, True, 60),
        (10, 0.01, False, 10),
        (10, 0.1, False, 20),
    ],
)
def test_the_longest_of_three_periods_holds(
    asked: float, cost: float, period: float, *, is_on_gpu: bool
) -> None:
    assert period_seconds(asked, cost, is_on_gpu=is_on_gpu) == pytest.approx(period)


@given(SECONDS, SECONDS, st.booleans())
def test_windows_never_cost_more_than_half_a_percent(
    asked: float,
    cost: float,
    is_on_gpu: bool,  # noqa: FBT001  given by place
) -> None:
    period = period_seconds(asked, cost, is_on_gpu=is_on_gpu)
    assert period >= asked
    assert cost <= period / 200 * (1 + 1e-12)
    assert period >= 60 or not is_on_gpu


@given(SECONDS)
def test_the_first_window_comes_within_a_minute(asked: float) -> None:
    assert first_seconds(asked) == min(asked, 60)


def a_wish(time: Time, **how: object) -> WindowWish:
    return WindowWish(600, is_on_gpu=True, now=time, **how)  # type: ignore[arg-type]


def test_nobody_wishes_before_the_training_is_steady_or_at_all() -> None:
    time = Time()
    wish, never = a_wish(time), WindowWish(None, now=time)
    never.steady()
    time.seconds += 1e6
    assert not wish.is_set
    assert not never.is_set
    wish.steady()
    assert not wish.is_set
    time.seconds += 60
    assert wish.is_set
    assert not never.is_set


def test_a_wish_lasts_until_a_window_begins() -> None:
    time = Time()
    wish = a_wish(time)
    wish.steady()
    time.seconds += 60
    wish.steady()
    assert wish.is_set
    wish.begun()
    assert not wish.is_set
    time.seconds += 599
    assert not wish.is_set
    time.seconds += 1
    assert wish.is_set


def test_a_wish_waits_for_what_no_window_should_show() -> None:
    time, held = Time(), [True]
    wish = a_wish(time, is_held=lambda: held[0])
    wish.steady()
    time.seconds += 60
    assert not wish.is_set
    held[0] = False
    assert wish.is_set


def test_what_the_first_window_loads_makes_no_period_longer_and_later_costs_do() -> None:
    time = Time()
    wish = a_wish(time)
    wish.steady()
    wish.begun()
    assert wish.cost(30.0) is None
    time.seconds += 600
    assert wish.is_set
    wish.begun()
    assert wish.cost(4.0) == 800
    time.seconds += 799
    assert not wish.is_set
    time.seconds += 1
    assert wish.is_set
    wish.begun()
    assert wish.cost(0.5) is None  # cheaper again
    time.seconds += 600
    assert wish.is_set
