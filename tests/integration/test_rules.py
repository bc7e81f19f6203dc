"""The recording rules in Prometheus' own rule tester: what they say of steps that we made up."""

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kopeck.deploy.rules import rule_groups
from tests.cluster.errors import MissingError
from tests.cluster.packages import install

_MINUTES = 120
_BOUNDS = ("0.01", "0.015", "0.02", "+Inf")


@pytest.fixture(scope="module")
def promtool() -> str:
    if shutil.which("promtool") is None:
        try:
            install(["prometheus"])
        except MissingError as missing:
            pytest.skip(str(missing))
    return "promtool"


def labels(job: str, pod: str = "a0", **more: str) -> str:
    named = {"namespace": "team", "training_job": job, "worker": "0", "pod": pod} | more
    return ",".join(f'{name}="{value}"' for name, value in named.items())


def steps(
    job: str, *, within: Iterable[int], pod: str = "a0", when: str = ""
) -> list[dict[str, str]]:
    """100 steps a minute, of which `within` are in the buckets of 10, 15 and 20 ms."""
    return [
        {
            "series": f"kopeck_step_jitter_seconds_bucket{{{labels(job, pod, le=bound)}}}",
            "values": f"{when} 0+{count}x{_MINUTES}",
        }
        for bound, count in zip(_BOUNDS, (*within, 100), strict=True)
    ]


def median(job: str, values: str) -> dict[str, str]:
    return {"series": f"kopeck_step_median_seconds{{{labels(job)}}}", "values": values}


def asked(expression: str, value: float, at: str = "2h") -> dict[str, Any]:
    """What an expression says; `at` since the beginning."""
    sample = {"labels": "{}", "value": value}
    return {"expr": f"sum({expression})", "eval_time": at, "exp_samples": [sample]}


def unsteady(jobs: list[str]) -> dict[str, Any]:
    alert = next(rule for group in rule_groups() for rule in group["rules"] if "alert" in rule)
    told = [
        {
            "exp_labels": {"severity": "warning", "namespace": "team", "training_job": job},
            "exp_annotations": alert["annotations"],
        }
        for job in jobs
    ]
    return {"eval_time": "2h", "alertname": alert["alert"], "exp_alerts": told}


def run(promtool: str, folder: Path, **test: Any) -> None:
    (folder / "rules.yaml").write_text(yaml.safe_dump({"groups": rule_groups()}))
    tests = {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": "5m",
        "tests": [{"interval": "1m", **test}],
    }
    (folder / "tests.yaml").write_text(yaml.safe_dump(tests))
    command = [promtool, "test", "rules", str(folder / "tests.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_accepts_the_files(promtool: str) -> None:
    subprocess.run([promtool, "check", "rules", "examples/prometheus-rules.yaml"], check=True)


def test_p99_is_within_15_ms_of_p50_where_99_steps_in_100_are(
    promtool: str, tmp_path: Path
) -> None:
    run(
        promtool,
        tmp_path,
        input_series=[
            *steps("steady", within=(90, 99, 100)),
            *steps("unsteady", within=(90, 98, 100)),
            median("steady", f"0.5x{_MINUTES}"),
        ],
        promql_expr_test=[
            asked('kopeck:step_jitter_seconds:p99_1h{training_job="steady"}', 0.015),
            asked('kopeck:step_jitter_seconds:p99_1h{training_job="unsteady"}', 0.0175),
            asked('kopeck:step_seconds:p50_1h{training_job="steady"}', 0.5),
            asked('kopeck:step_seconds:p99_24h{training_job="steady"}', 0.515),
            asked('kopeck:step_median_drift_ratio:1h{training_job="steady"}', 0.0),
        ],
        alert_rule_test=[unsteady(["unsteady"])],
    )


def test_steps_of_every_worker_and_attempt_count_once(promtool: str, tmp_path: Path) -> None:
    """The second attempt begins after an hour, in pods of its own."""
    ended = "_x60"
    first, second = (
        steps("job", within=(100, 100, 100), pod="a0"),
        steps("job", within=(0, 0, 0), pod="a1", when=ended),
    )
    for series in first:
        series["values"] = series["values"].replace(f"x{_MINUTES}", "x60") + " stale"
    run(
        promtool,
        tmp_path,
        input_series=[*first, *second],
        promql_expr_test=[
            asked('kopeck:step_jitter_seconds_bucket:increase5m{le="+Inf"}', 500, at="30m"),
            asked('kopeck:step_jitter_seconds_bucket:increase5m{le="+Inf"}', 500, at="90m"),
            asked('kopeck:step_jitter_seconds_bucket:increase5m{le="0.02"}', 0, at="90m"),
        ],
    )


def test_drift_is_how_far_the_median_moved_from_one_end_of_the_window_to_the_other(
    promtool: str, tmp_path: Path
) -> None:
    run(
        promtool,
        tmp_path,
        input_series=[median("job", "0.5x75 0.625x60")],
        promql_expr_test=[asked("kopeck:step_median_drift_ratio:1h", 0.25)],
    )


def test_a_job_without_steps_has_no_figures(promtool: str, tmp_path: Path) -> None:
    nothing = {"expr": '{__name__=~"kopeck:.+"}', "eval_time": "2h", "exp_samples": []}
    run(promtool, tmp_path, input_series=[], promql_expr_test=[nothing])
