"""Times as Kubernetes writes them."""

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from kopeck.api.timestamps import format_timestamp, parse_timestamp


def test_a_time_is_read_with_its_zone() -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert parse_timestamp("2026-01-01T12:00:00Z") == noon
    assert parse_timestamp("2026-01-01T14:00:00+02:00") == noon
    assert parse_timestamp("2026-01-01T12:00:00.250000Z") == noon + timedelta(milliseconds=250)


def test_a_time_is_written_in_utc() -> None:
    east = timezone(timedelta(hours=2))
    assert format_timestamp(datetime(2026, 1, 1, 14, tzinfo=east)) == "2026-01-01T12:00:00Z"


@given(st.datetimes(datetime(1970, 1, 1), datetime(9999, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001  bounds are naive
def test_what_is_written_reads_back_as_the_same_second(moment: datetime) -> None:
    assert parse_timestamp(format_timestamp(moment)) == moment.replace(microsecond=0)
