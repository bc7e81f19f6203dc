"""A real Prometheus that scrapes a real exporter has every series that the exporter promises."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import requests

from kopeck_exporter.names import METRICS
from tests.cluster import ClusterError
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
)
from tests.waiting import eventually

_ATTEMPTS = 1000
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
    except ClusterError as missing:
        pytest.skip(str(missing))
    finally:
        for name in (PROCESS, PODS_PROCESS):
            end(tmp_path, name)


def names_in(url: str, where: str = "") -> dict[str, int]:
    """How many series each name has."""
    query = f'count by (__name__) ({{training_job="llama",{where}}})'
    answer = requests.get(f"{url}/api/v1/query", params={"query": query}, timeout=10).json()
    return {each["metric"]["__name__"]: int(each["value"][1]) for each in answer["data"]["result"]}


def a_report(sequence: int) -> dict[str, Any]:
    return {
        "seq": sequence,
        "samples": 8 * sequence,
        "tokens": 100,
        "compile_decision": A_DECISION,
        "comm_window": A_WINDOW,
        "profiler_idle_seconds": 9.0,
    }


def promised() -> set[str]:
    return {
        metric.name + part
        for metric in METRICS
        if metric.exported_by == "worker"
        for part in (_HISTOGRAM_PARTS if metric.type == "histogram" else ("",))
    }


def test_all_series_are_there_and_none_is_added_by_a_thousand_processes(
    exporter: Sidecar, prometheus_url: str
) -> None:
    with Sender(exporter.socket) as rank, Sender(exporter.socket) as sampler:

        def all_there() -> dict[str, int]:
            """Sent again and again: figures go when their senders are silent."""
            rank.send(**a_report(1))
            sampler.send_message(a_sampler_message())
            shown = names_in(prometheus_url)
            assert promised() <= shown.keys(), promised() - shown.keys()
            return shown

        first = eventually(all_there)
        for attempt in range(1, _ATTEMPTS + 1):
            for sender in (rank, sampler):
                sender.reconnect()
            uuids = [f"GPU-{attempt}-{index}" for index in (0, 1)]
            gpus = [a_gpu_message(index, uuid=uuid) for index, uuid in enumerate(uuids)]
            rank.send(**a_report(attempt))
            sampler.send_message(a_sampler_message(gpus=gpus))
            if attempt % _AT_ONCE == 0:
                eventually(partial(is_shown, exporter, uuids[0]))

        def none_was_added() -> None:
            rank.send(**a_report(_ATTEMPTS))
            sampler.send_message(a_sampler_message(gpus=gpus, seq=2))
            shown = names_in(prometheus_url, 'uuid=~"|GPU-1000-."')
            assert shown == names_in(prometheus_url) == first

        eventually(none_was_added)


def is_shown(exporter: Sidecar, uuid: str) -> None:
    assert f'uuid="{uuid}"' in get(exporter.port, "/metrics").text
