"""A real Prometheus that scrapes a real exporter has every series that the exporter promises."""

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kopeck_exporter.device import THROTTLE_REASONS
from kopeck_exporter.names import METRICS, RECOMPILE_REASONS
from tests.asking import queried
from tests.cluster import ClusterError, MissingError
from tests.cluster.processes import end
from tests.cluster.prometheus import PODS_PROCESS, PROCESS, start_prometheus
from tests.unit.exporter.reporting import (
    A_DECISION,
    A_WINDOW,
    Sender,
    Sidecar,
    a_gpu_message,
    a_sampler_message,
    get,
    running_sidecar,
    steps_of,
)
from tests.waiting import eventually

_PROCESSES = 1000
_REPORTS = 3
"""Of each: that a process is new is seen by what it says less than the one before it."""

_MODES = ("default", "reduce-overhead", "max-autotune", "off")
_AT_ONCE = 20  # fewer than what may wait to be accepted
_HISTOGRAM_PARTS = ("_bucket", "_sum", "_count")


@pytest.fixture
def exporter(tmp_path: Path) -> Iterator[Sidecar]:
    (tmp_path / "annotations").write_text('kopeck.dev/hourly-rate-dollars="3.2"\n')
    with running_sidecar(tmp_path) as running:
        yield running


@pytest.fixture
def prometheus_url(exporter: Sidecar, tmp_path: Path) -> Iterator[str]:
    try:
        yield start_prometheus(tmp_path, [f"127.0.0.1:{exporter.port}"], 1)
    except MissingError as missing:
        pytest.skip(str(missing))
    finally:
        for name in (PROCESS, PODS_PROCESS):
            end(tmp_path, name)


def names_in(url: str, where: str = "") -> dict[str, int]:
    """How many series each name has."""
    query = f'count by (__name__) ({{training_job="llama",{where}}})'
    return {each["metric"]["__name__"]: int(each["value"][1]) for each in queried(url, query)}


def sums_in(url: str, name: str, by: str) -> dict[str, float]:
    query = f'sum by ({by}) ({name}{{training_job="llama"}})'
    return {each["metric"].get(by, ""): float(each["value"][1]) for each in queried(url, query)}


def reports_of(process: int) -> Iterator[dict[str, Any]]:
    """The messages of one process of a rank: from the start anew, in a mode of its own."""
    reason = RECOMPILE_REASONS[process % len(RECOMPILE_REASONS)]
    for sequence in range(1, _REPORTS + 1):
        yield {
            "seq": sequence,
            "samples": 8 * sequence,
            "step_bucket_counts": steps_of(*[0.41] * sequence),
            "step_seconds_sum": 0.41 * sequence,
            "tokens": 100 * sequence,
            "compile_mode": _MODES[process % len(_MODES)],
            "compile_decision": A_DECISION | {"mode": _MODES[process % len(_MODES)]},
            "recompiles": sequence,
            "recompile_reasons": {reason: sequence},
            "dropped_reports": sequence,
            "comm_window": A_WINDOW,
            "profiler_idle_seconds": 9.0,
        }


def gpus_of(process: int) -> list[dict[str, Any]]:
    """Two that no process before had, with a fault and a slowdown of their own."""
    throttled = {THROTTLE_REASONS[process % len(THROTTLE_REASONS)]: float(process)}
    return [
        a_gpu_message(
            index,
            uuid=f"GPU-{process}-{index}",
            xids={str(process): 1},
            throttled_seconds=dict.fromkeys(THROTTLE_REASONS, 0.5) | throttled,
        )
        for index in (0, 1)
    ]


def promised() -> set[str]:
    return {
        metric.name + part
        for metric in METRICS
        if metric.exported_by == "worker"
        for part in (_HISTOGRAM_PARTS if metric.type == "histogram" else ("",))
    }


def test_a_thousand_processes_add_up_exactly_and_add_no_series(
    exporter: Sidecar, prometheus_url: str
) -> None:
    with Sender(exporter.socket) as rank, Sender(exporter.socket) as sampler:

        def all_there() -> dict[str, int]:
            """Sent again and again: figures go when their senders are silent."""
            for report in reports_of(0):
                rank.send(**report)
            sampler.send_message(a_sampler_message(gpus=gpus_of(0)))
            shown = names_in(prometheus_url)
            assert promised() <= shown.keys(), promised() - shown.keys()
            return shown

        first = eventually(all_there)
        for process in range(1, _PROCESSES):
            for sender in (rank, sampler):
                sender.reconnect()
            for report in reports_of(process):
                rank.send(**report)
            sampler.send_message(a_sampler_message(gpus=gpus_of(process)))
            if process % _AT_ONCE == 0:
                eventually(partial(is_shown, exporter, f"GPU-{process}-0"))

        last = _PROCESSES - 1

        def none_was_added() -> None:
            rank.send(**list(reports_of(last))[-1])
            sampler.send_message(a_sampler_message(gpus=gpus_of(last), seq=2))
            shown = names_in(prometheus_url, f'uuid=~"|GPU-{last}-."')
            assert shown == names_in(prometheus_url) == first

        eventually(none_was_added)
    reasons = (RECOMPILE_REASONS[each % len(RECOMPILE_REASONS)] for each in range(_PROCESSES))
    recompiles = {reason: _REPORTS * count for reason, count in Counter(reasons).items()}
    steps = _PROCESSES * _REPORTS
    assert sums_in(prometheus_url, "kopeck_steps_total", "worker") == {"3": steps}
    assert sums_in(prometheus_url, "kopeck_samples_total", "worker") == {"3": 8 * steps}
    assert sums_in(prometheus_url, "kopeck_tokens_total", "worker") == {"3": 100 * steps}
    assert sums_in(prometheus_url, "kopeck_recompiles_total", "reason") == recompiles
    assert sums_in(prometheus_url, "kopeck_gpu_xid_errors_total", "xid") == {str(last): 2}


def is_shown(exporter: Sidecar, uuid: str) -> None:
    assert f'uuid="{uuid}"' in get(exporter.port, "/metrics").text


def test_a_prometheus_that_does_not_start_is_a_failure_and_no_reason_to_skip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder := tmp_path / "bin").mkdir()
    (folder / "prometheus").symlink_to(shutil.which("false") or "")
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    with pytest.raises(ClusterError) as refused:
        start_prometheus(tmp_path, [], 1)
    end(tmp_path, PODS_PROCESS)
    assert not isinstance(refused.value, MissingError)


def test_a_prometheus_that_cannot_be_had_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(MissingError, match="install them with your system's package manager"):
        start_prometheus(tmp_path, [], 1)
