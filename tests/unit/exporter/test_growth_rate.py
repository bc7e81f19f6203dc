"""The arithmetic of `tests.gpu.sampler`, on readings as a GPU's counters give them."""

from collections.abc import Callable

import pytest

from tests.gpu.growth_rate import Scrape, falls, growth_per_second


def scraped(counter: Callable[[float], float], every: float, seconds: float) -> list[Scrape]:
    """Four times a second, of a counter that is read at 1.0 and `every` so many seconds later."""
    moments = [0.25 * each for each in range(int(4 * seconds) + 1)]
    return [(at, counter(1.0 + (at - 1.0) // every * every)) for at in moments]


@pytest.mark.parametrize(("every", "seconds"), [(5.0, 9.0), (10.0, 25.0), (10.0, 40.0)])
def test_a_counter_that_is_read_now_and_then_grows_as_fast_as_it_does(
    every: float, seconds: float
) -> None:
    watts = scraped(lambda read_at: 692.0 * read_at, every, seconds)
    assert growth_per_second(watts) == pytest.approx(692.0)


@pytest.mark.parametrize("seconds", [0.0, 0.5, 9.0])
def test_without_two_readings_in_the_window_the_growth_is_unknown(seconds: float) -> None:
    assert growth_per_second(scraped(lambda read_at: 692.0 * read_at, 10.0, seconds)) is None


def test_a_counter_that_does_not_move_tells_no_rate() -> None:
    assert growth_per_second(scraped(lambda _: 4.0, 5.0, 60.0)) is None
    assert growth_per_second([]) is None


def test_a_counter_that_goes_back_is_found() -> None:
    assert falls([(0.0, 1.0), (1.0, 1.0), (2.0, 3.0)]) == 0
    assert falls([(0.0, 1.0), (1.0, 3.0), (2.0, 2.0), (3.0, 1.0)]) == 2
