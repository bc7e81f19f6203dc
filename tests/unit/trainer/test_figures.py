from kopeck_exporter.names import STEP_JITTER_SECONDS_BUCKETS, STEP_SECONDS_BUCKETS
from kopeck_trainer.figures import RECENT_STEPS, Figures, Histogram, RecentRate


def test_a_step_counts_in_the_first_bucket_that_holds_it() -> None:
    histogram = Histogram(STEP_SECONDS_BUCKETS)
    for seconds in (0.0, STEP_SECONDS_BUCKETS[0], STEP_SECONDS_BUCKETS[0] + 1e-6, 1e9):
        histogram.add(seconds)
    assert histogram.counts[:2] == [2, 1]
    assert histogram.counts[-1] == 1
    assert len(histogram.counts) == len(STEP_SECONDS_BUCKETS) + 1


def test_the_rate_leaves_out_the_first_step_and_forgets_old_ones() -> None:
    rate = RecentRate()
    rate.add(100.0, 8)  # after 100 s of compiling
    assert rate.samples_per_second() is None
    rate.add(101.0, 16)
    assert rate.samples_per_second() == 8
    for step in range(100):
        rate.add(102.0 + step * 2, 24 + step * 8)
    assert rate.samples_per_second() == 4


def test_how_long_no_step_has_ended_is_told_beside_how_long_steps_usually_take() -> None:
    rate = RecentRate()
    assert (rate.idle_seconds(100.0), rate.mean_step_seconds()) == (None, None)
    rate.add(100.0, 8)
    assert (rate.idle_seconds(100.5), rate.mean_step_seconds()) == (0.5, None)
    for ended_at in (101.0, 102.0, 106.0):
        rate.add(ended_at, 16)
    assert (rate.idle_seconds(136.0), rate.mean_step_seconds()) == (30.0, 2.0)


def test_the_steady_step_is_the_median_of_the_last_ones_and_unknown_before_the_first() -> None:
    figures = Figures()
    assert figures.steady_step_seconds is None
    figures.steady_seconds.extend([9.0] * 20 + [1.0] * 9 + [2.0] * 11)
    assert figures.steady_step_seconds == 2.0


def test_jitter_is_what_a_step_takes_beyond_the_median_of_those_before_it() -> None:
    figures = Figures()
    for _ in range(RECENT_STEPS):
        figures.add_steady(0.5)
    assert sum(figures.jitter.counts) == 0, "there is no median to speak of yet"
    for seconds in (0.4, 0.5, 0.512, 9.0):
        figures.add_steady(seconds)
    counts = dict(zip((*STEP_JITTER_SECONDS_BUCKETS, None), figures.jitter.counts, strict=True))
    assert {bound: count for bound, count in counts.items() if count} == {
        0.001: 2,
        0.015: 1,
        None: 1,
    }
    assert figures.jitter.sum_seconds == 8.512


def test_utilisation_is_what_the_model_needs_over_what_the_device_can_do() -> None:
    figures = Figures(flops_per_sample=3e12, peak_flops=100e12)
    assert figures.mfu is None
    figures.rate.add(100.0, 0)
    figures.rate.add(101.0, 10)
    assert figures.mfu == 0.3
    assert Figures(rate=figures.rate, flops_per_sample=3e12).mfu is None
