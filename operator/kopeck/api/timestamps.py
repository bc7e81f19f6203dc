"""Times as Kubernetes writes them: RFC 3339, UTC, whole seconds or finer."""

from datetime import UTC, datetime


def parse_timestamp(text: str) -> datetime:
    """The timezone-aware time of an RFC 3339 text. Raises ValueError for what is none."""
    return datetime.fromisoformat(text).astimezone(UTC)


def format_timestamp(moment: datetime) -> str:
    """RFC 3339 in UTC, whole seconds, as `metav1.Time`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
