"""The pages over real HTTP."""

import json
import socket
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics

from kopeck_exporter.names import METRICS
from tests.unit.exporter.reporting import Sender, Sidecar, get, running_sidecar
from tests.waiting import eventually

OPENMETRICS = "application/openmetrics-text;version=1.0.0"


def test_health_is_ok(sidecar: Sidecar) -> None:
    answer = get(sidecar.port, "/healthz")
    assert (answer.status, answer.text) == (200, "ok")


@pytest.mark.parametrize("path", ["/", "/metrics/", "/healthz2", "//", "/../etc/passwd"])
def test_another_path_is_not_found_and_says_what_there_is(sidecar: Sidecar, path: str) -> None:
    answer = get(sidecar.port, path)
    assert answer.status == 404
    assert "/metrics, /progress, /healthz" in answer.text


def test_a_query_changes_nothing(sidecar: Sidecar) -> None:
    assert get(sidecar.port, "/healthz?a=b").status == 200


def test_progress_is_json(sidecar: Sidecar) -> None:
    answer = get(sidecar.port, "/progress")
    assert answer.content_type == "application/json"
    assert json.loads(answer.text)["worker"] == 3


def test_openmetrics_is_sent_to_who_accepts_it(sidecar: Sidecar, sender: Sender) -> None:
    sender.send(tokens=4)

    def shown() -> None:
        answer = get(sidecar.port, "/metrics", OPENMETRICS)
        assert answer.content_type.startswith("application/openmetrics-text; version=1.0.0")
        assert answer.text.endswith("# EOF\n")
        families = {each.name: each.type for each in openmetrics(answer.text)}  # type: ignore[no-untyped-call]
        assert families.get("kopeck_step_seconds") == "histogram"
        assert families.get("kopeck_worker") == "info"

    eventually(shown)


def test_plain_text_is_sent_to_all_others_and_has_no_created_series(
    sidecar: Sidecar, sender: Sender
) -> None:
    sender.send()

    def shown() -> None:
        assert sidecar.value("kopeck_samples_total") == 8

    eventually(shown)
    answer = get(sidecar.port, "/metrics")
    assert answer.content_type.startswith("text/plain; version=")
    assert "_created" not in answer.text
    values = [line for line in answer.text.splitlines() if not line.startswith("#")]
    assert not [line for line in values if "nan" in line.lower()]
    for metric in METRICS:
        if f"# HELP {metric.name} " in answer.text:
            assert f"# HELP {metric.name} {metric.help}\n" in answer.text


def test_a_client_that_sends_nothing_is_cut_off_and_holds_up_nobody(tmp_path: Path) -> None:
    with (
        running_sidecar(tmp_path, request_seconds=0.2) as sidecar,
        socket.create_connection(("127.0.0.1", sidecar.port), timeout=30) as slow,
    ):
        slow.sendall(b"GET /metrics HTTP/1.1\r\nHost: ")
        assert get(sidecar.port, "/healthz").status == 200
        assert slow.recv(1) == b""


def test_a_client_that_leaves_early_is_no_news(
    sidecar: Sidecar, capfd: pytest.CaptureFixture[str]
) -> None:
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", sidecar.port)) as hasty:
            hasty.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            hasty.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
    assert get(sidecar.port, "/healthz").status == 200
    assert capfd.readouterr().err == ""


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
def test_both_address_families_are_served(sidecar: Sidecar) -> None:
    with socket.create_connection(("::1", sidecar.port), timeout=10) as client:
        client.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert client.recv(64).startswith(b"HTTP/1.0 200")
