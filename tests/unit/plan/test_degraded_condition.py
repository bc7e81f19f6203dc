"""Whether a job says that it trains in a worse way than was asked for."""

from typing import Any

from kopeck.api.status import Condition
from kopeck.plan.degraded_condition import with_degraded_condition
from tests.builders import T0, a_report


def degraded(before: list[Condition], **report: Any) -> list[tuple[str, str]]:
    conditions = with_degraded_condition(before, a_report(**report), T0)
    return [(each.status, each.reason) for each in conditions]


MISMATCH = with_degraded_condition([], a_report(numericsMismatch="default differs"), T0)


def test_a_mismatch_is_said_with_what_to_do() -> None:
    [condition] = MISMATCH
    assert (condition.type, condition.status) == ("Degraded", "True")
    assert condition.reason == "NumericsMismatch"
    assert condition.message == (
        "default differs; it is not used, set spec.training.compile.mode to off or fix the model"
    )


def test_nothing_is_said_of_a_job_that_never_was_degraded() -> None:
    assert degraded([]) == []


def test_an_attempt_that_agrees_ends_it() -> None:
    assert degraded(MISMATCH) == [("False", "NumericsAgree")]


def test_a_report_that_knows_no_mode_yet_changes_nothing() -> None:
    assert degraded(MISMATCH, compileMode=None) == [("True", "NumericsMismatch")]
