"""Recording rules and alerts of Prometheus: how steady the steps of a job are, in the long run.

Every five minutes the steps since are counted once, by job; what a window of an hour, a day or 30
days says is a sum over those counts. Series of workers begin anew with each attempt, those of jobs
do not.
"""

from dataclasses import dataclass
from typing import Any

from kopeck_exporter.names import STEP_JITTER_SECONDS, STEP_MEDIAN_SECONDS, STEP_SECONDS

_BY_JOB = "by (namespace, training_job)"
_BY_BUCKET = "by (namespace, training_job, le)"
_MINUTES = 5
"""Each count is of the time since the one before it: rules must run as often as they look back."""

JITTER_LIMIT_SECONDS = 0.015
DRIFT_LIMIT_RATIO = 0.05

STEP_COUNTS = "kopeck:step_seconds_bucket:increase5m"
JITTER_COUNTS = "kopeck:step_jitter_seconds_bucket:increase5m"
MEDIAN = "kopeck:step_median_seconds:avg"


@dataclass(frozen=True)
class Window:
    """How far back a figure looks, and how often it is worked out: longer ones cost more."""

    name: str
    minutes: int
    every: str


WINDOWS = (Window("1h", 60, "5m"), Window("24h", 24 * 60, "15m"), Window("30d", 30 * 1440, "1h"))


def rule_groups() -> list[dict[str, Any]]:
    """As Prometheus and PrometheusRule objects have them."""
    counts = {"name": "kopeck-steps", "interval": f"{_MINUTES}m", "rules": _counts()}
    windows = [
        {"name": f"kopeck-steadiness-{each.name}", "interval": each.every, "rules": _figures(each)}
        for each in WINDOWS
    ]
    alerts = {"name": "kopeck-steadiness-alerts", "rules": _alerts()}
    return [counts, *windows, alerts]


def _counts() -> list[dict[str, Any]]:
    look_back = f"[{_MINUTES}m]"
    return [
        _record(STEP_COUNTS, f"sum {_BY_BUCKET} (increase({STEP_SECONDS.name}_bucket{look_back}))"),
        _record(
            JITTER_COUNTS,
            f"sum {_BY_BUCKET} (increase({STEP_JITTER_SECONDS.name}_bucket{look_back}))",
        ),
        _record(MEDIAN, f"avg {_BY_JOB} ({STEP_MEDIAN_SECONDS.name})"),
    ]


def _figures(window: Window) -> list[dict[str, Any]]:
    """p50 is the median of medians; jitter is what p99 lies above it.

    Drift compares the last tenth of the window with its first.
    """
    tenth, nine_tenths = f"{window.minutes // 10}m", f"{window.minutes * 9 // 10}m"
    p50, jitter = f"kopeck:step_seconds:p50_{window.name}", _jitter(window.name)
    counted = f"sum {_BY_BUCKET} (sum_over_time({JITTER_COUNTS}[{window.name}]))"
    first = f"avg_over_time({MEDIAN}[{tenth}] offset {nine_tenths})"
    return [
        _record(p50, f"quantile_over_time(0.5, {MEDIAN}[{window.name}])"),
        _record(jitter, f"histogram_quantile(0.99, {counted})"),
        _record(f"kopeck:step_seconds:p99_{window.name}", f"{p50} + {jitter}"),
        _record(_drift(window.name), f"avg_over_time({MEDIAN}[{tenth}]) / {first} - 1"),
    ]


def _alerts() -> list[dict[str, Any]]:
    milliseconds = round(JITTER_LIMIT_SECONDS * 1000)
    percent = round(DRIFT_LIMIT_RATIO * 100)
    return [
        {
            "alert": "KopeckStepsUnsteady",
            "expr": f"{_jitter('30d')} > {JITTER_LIMIT_SECONDS}",
            "labels": {"severity": "warning"},
            "annotations": {
                "summary": f"One step in a hundred takes over {milliseconds} ms beyond the median",
                "description": f"p99 of the job's step time was more than {milliseconds} ms above "
                "p50 over the last 30 days, or as long as it has run. kopeck_step_jitter_seconds "
                "says when, kopeck_phase_seconds_total what the time went into.",
            },
        },
        {
            "alert": "KopeckStepsDrift",
            "expr": f"abs({_drift('24h')}) > {DRIFT_LIMIT_RATIO}",
            "for": "30m",
            "labels": {"severity": "warning"},
            "annotations": {
                "summary": f"The job's median step time has moved by over {percent} % in a day",
                "description": f"{MEDIAN} says when. Every sample costs as much more, or less, as "
                "a step takes longer, or shorter.",
            },
        },
    ]


def _jitter(window: str) -> str:
    return f"kopeck:step_jitter_seconds:p99_{window}"


def _drift(window: str) -> str:
    return f"kopeck:step_median_drift_ratio:{window}"


def _record(name: str, expression: str) -> dict[str, Any]:
    return {"record": name, "expr": expression}
