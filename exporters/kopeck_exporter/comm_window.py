"""What a rank's last trace window says of its communication."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kopeck_exporter.fields import MalformedReportError, Message, number, ratio, ratio_if_known


@dataclass(frozen=True, slots=True, kw_only=True)
class CommWindow:
    """Of step time: `comm_ratio`, the `exposed_ratio` of it, and the `wait_ratio` for late ranks.

    `overlap_ratio` is the share of communication that ran beside computation, None without any.
    """

    time_unix_seconds: float
    comm_ratio: float
    exposed_ratio: float
    wait_ratio: float | None
    """None where the ranks' collectives could not be matched."""
    overlap_ratio: float | None


def window_if_known(message: Message, name: str) -> CommWindow | None:
    """Raises MalformedReportError for anything but a window, or null."""
    window: Any = message.get(name)
    if window is None:
        return None
    if not isinstance(window, dict):
        raise MalformedReportError(f"{name} is no JSON object")
    return CommWindow(
        time_unix_seconds=number(window, "time"),
        comm_ratio=ratio(window, "comm_ratio"),
        exposed_ratio=ratio(window, "exposed_ratio"),
        wait_ratio=ratio_if_known(window, "wait_ratio"),
        overlap_ratio=ratio_if_known(window, "overlap_ratio"),
    )


def mean_ratio(windows: Iterable[CommWindow], name: str) -> float | None:
    """Over the ranks; None where one of them does not know it."""
    values = [getattr(window, name) for window in windows]
    return None if None in values else sum(values) / len(values)
