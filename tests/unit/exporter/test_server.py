"""The pages over real HTTP."""

import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics

from kopeck_exporter.names import METRICS
from kopeck_exporter.server import Page, PageServer
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


@dataclass
class HeldPage:
    """One that is not made before it may be."""

    asked: threading.Event = field(default_factory=threading.Event)
    may_answer: threading.Event = field(default_factory=threading.Event)

    def __call__(self, _accept: str) -> Page:
        self.asked.set()
        self.may_answer.wait()
        return Page("text/plain", b"samples")


def test_a_client_that_leaves_early_is_no_news(capfd: pytest.CaptureFixture[str]) -> None:
    page = HeldPage()
    with serving(PageServer(0, {"/metrics": page})) as server:
        scraped = server.next_scrape()
        with socket.create_connection(("127.0.0.1", server.port)) as hasty:
            hasty.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            hasty.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
            assert page.asked.wait(30)
        page.may_answer.set()
        eventually(no_request_is_served)
        assert not scraped.is_set()
    assert capfd.readouterr().err == ""


def test_a_scrape_under_way_is_not_taken_for_the_next_one() -> None:
    page = HeldPage()
    with serving(PageServer(0, {"/metrics": page})) as server:
        this = server.next_scrape()
        with ThreadPoolExecutor() as client:
            answer = client.submit(get, server.port, "/metrics")
            assert page.asked.wait(30)
            following = server.next_scrape()
            page.may_answer.set()
            assert answer.result().status == 200
        eventually(no_request_is_served)
        assert this.is_set()
        assert not following.is_set()
        get(server.port, "/metrics")
        assert following.wait(30)


def no_request_is_served() -> None:
    names = [thread.name for thread in threading.enumerate()]
    assert not [name for name in names if "process_request_thread" in name]


@contextmanager
def serving(server: PageServer) -> Iterator[PageServer]:
    thread = threading.Thread(target=server.serve_forever, args=[0.02])
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
def test_both_address_families_are_served(sidecar: Sidecar) -> None:
    with socket.create_connection(("::1", sidecar.port), timeout=10) as client:
        client.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert client.recv(64).startswith(b"HTTP/1.0 200")
