"""Conditions of the standard shape, of which only real changes move the transition time."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from kopeck.api.status import Condition
from kopeck.api.timestamps import format_timestamp


def with_condition(  # noqa: PLR0913  the fields of a condition
    conditions: Sequence[Condition],
    kind: str,
    status: Literal["True", "False", "Unknown"],
    reason: str,
    message: str,
    now: datetime,
) -> list[Condition]:
    """The conditions with one of them set."""
    before = next((each for each in conditions if each.type == kind), None)
    unchanged = before is not None and before.status == status
    since = before.last_transition_time if before and unchanged else format_timestamp(now)
    condition = Condition(
        type=kind, status=status, reason=reason, message=message, last_transition_time=since
    )
    if before is None:
        return [*conditions, condition]
    return [condition if each.type == kind else each for each in conditions]
