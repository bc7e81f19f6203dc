"""The buckets that trainer and exporter share."""

from itertools import pairwise

from kopeck_exporter.names import STEP_SECONDS_BUCKETS


def test_at_most_twenty_buckets_cover_ten_milliseconds_to_ten_minutes() -> None:
    assert len(STEP_SECONDS_BUCKETS) + 1 <= 20
    assert STEP_SECONDS_BUCKETS[0] == 0.01
    assert STEP_SECONDS_BUCKETS[-1] == 600


def test_each_bound_is_about_twice_the_one_before() -> None:
    assert all(1.8 < above / below < 2.2 for below, above in pairwise(STEP_SECONDS_BUCKETS))
