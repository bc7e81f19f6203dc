"""Whether training goes on in a worse way than was asked for."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from kopeck.api.status import Condition
from kopeck.plan.conditions import with_condition
from kopeck.plan.reports import trusted


def with_degraded_condition(
    conditions: Sequence[Condition], report: Mapping[str, Any], now: datetime
) -> list[Condition]:
    """The conditions with Degraded by a worker's report; unchanged while it never was."""
    report = trusted(report)
    if mismatch := report.get("numericsMismatch"):
        said = f"{mismatch}; it is not used, set spec.training.compile.mode to off or fix the model"
        return with_condition(conditions, "Degraded", "True", "NumericsMismatch", said, now)
    has_been = any(each.type == "Degraded" for each in conditions)
    if not has_been or report.get("compileMode") is None:
        return list(conditions)
    said = "the compile mode in use computes what eager does"
    return with_condition(conditions, "Degraded", "False", "NumericsAgree", said, now)
