"""What auto chose is taken in whole, or the message is refused."""

from typing import Any

import pytest

from kopeck_exporter.decision import CompileDecision, ModeTrial
from kopeck_exporter.fields import MalformedReportError
from kopeck_exporter.report import read_report
from tests.unit.exporter.reporting import A_DECISION, a_message

A_TRIAL = {"mode": "off", "compile_seconds": 0.0, "step_seconds": 0.3}


def read(decision: Any) -> CompileDecision | None:
    return read_report(a_message(compile_decision=decision)).compile_decision


def test_mode_trials_and_break_even_are_read() -> None:
    assert read(A_DECISION) == CompileDecision(
        mode="reduce-overhead",
        why="compile mode reduce-overhead for 1000 steps",
        trials=(ModeTrial("default", 30.0, 0.27), ModeTrial("reduce-overhead", 40.0, 0.2)),
        break_even_steps=143.0,
    )


def test_the_first_mode_has_nothing_to_repay() -> None:
    kept = read({"mode": "default", "trials": []})
    assert kept == CompileDecision(mode="default", why=None, trials=(), break_even_steps=None)


@pytest.mark.parametrize(
    "wrong",
    [
        "default",
        [],
        {"mode": "default"},
        {"mode": "Default", "trials": []},
        {"mode": None, "trials": []},
        {"mode": "off", "trials": {}},
        {"mode": "off", "trials": [3]},
        {"mode": "off", "trials": [A_TRIAL, A_TRIAL]},
        {"mode": "off", "trials": [A_TRIAL | {"mode": f"mode-{index}"} for index in range(9)]},
        {"mode": "off", "trials": [A_TRIAL | {"step_seconds": None}]},
        {"mode": "off", "trials": [A_TRIAL | {"compile_seconds": -1}]},
        {"mode": "off", "trials": [], "break_even_steps": float("nan")},
        {"mode": "off", "trials": [], "why": 3},
    ],
)
def test_what_is_no_decision_or_would_make_too_many_series_is_refused(wrong: Any) -> None:
    with pytest.raises(MalformedReportError):
        read(wrong)
