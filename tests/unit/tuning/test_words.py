"""Figures as people read them."""

import pytest

from kopeck.tuning.words import readable_bytes, readable_seconds


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.01234, "12.3 ms"),
        (0.9994, "999 ms"),
        (0.9996, "1 s"),
        (1.234, "1.23 s"),
        (4321.5, "4322 s"),
    ],
)
def test_seconds_have_three_digits_and_the_unit_that_fits(seconds: float, said: str) -> None:
    assert readable_seconds(seconds) == said


@pytest.mark.parametrize(
    ("count", "said"),
    [(2**29, "512 MiB"), (2**30, "1 GiB"), (1.5 * 2**36, "96 GiB"), (2**41, "2048 GiB")],
)
def test_bytes_are_counted_in_mebibytes_or_gibibytes(count: float, said: str) -> None:
    assert readable_bytes(count) == said
