"""A DCGM exporter on the node fills in what the sampler does not know, by UUID alone."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from time import monotonic

import pytest

from kopeck_exporter.dcgm import STALE_SECONDS, Dcgm, read_activity
from kopeck_exporter.errors import ErrorCounts, Fault
from kopeck_exporter.sampler_report import GpuReport, read_sampler_report
from tests.unit.exporter.reporting import a_gpu_message, a_sampler_message

LABELS = 'gpu="0",device="nvidia0",modelName="NVIDIA A100",Hostname="node"'
ANSWER = f"""\
# HELP DCGM_FI_PROF_SM_ACTIVE The ratio of cycles an SM has at least 1 warp assigned.
# TYPE DCGM_FI_PROF_SM_ACTIVE gauge
DCGM_FI_PROF_SM_ACTIVE{{UUID="GPU-0",{LABELS}}} 0.5
DCGM_FI_PROF_SM_ACTIVE{{UUID="GPU-9",{LABELS}}} 0.9
# TYPE DCGM_FI_PROF_GR_ENGINE_ACTIVE gauge
DCGM_FI_PROF_GR_ENGINE_ACTIVE{{UUID="GPU-1",{LABELS}}} 1.0
# TYPE DCGM_FI_PROF_PIPE_TENSOR_ACTIVE gauge
DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{{UUID="GPU-0",{LABELS}}} 0.25
"""


class Node(ThreadingHTTPServer):
    """One that serves `text` at every path."""

    text = ANSWER.encode()

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/metrics"


class _Handler(BaseHTTPRequestHandler):
    server: Node

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.server.text)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def node() -> Iterator[Node]:
    with Node() as server:
        thread = Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def a_gpu(index: int = 0, **facts: object) -> GpuReport:
    [gpu] = read_sampler_report(a_sampler_message(gpus=[a_gpu_message(index, **facts)])).gpus
    return gpu


def test_what_the_sampler_does_not_know_is_filled_in_by_uuid(node: Node) -> None:
    errors = ErrorCounts()
    dcgm = Dcgm(node.url, errors)
    dcgm.ask()
    before_hopper = a_gpu(sm_utilization_ratio=None, tensor_active_ratio=0.7)
    completed = dcgm.completed(before_hopper, monotonic())
    assert completed.sm_utilization_ratio == 0.5
    assert completed.tensor_active_ratio == 0.7
    assert errors.by_fault() == {}


def test_engine_activity_is_never_passed_off_as_sm_utilisation(node: Node) -> None:
    dcgm = Dcgm(node.url, ErrorCounts())
    dcgm.ask()
    gpu = a_gpu(1, sm_utilization_ratio=None)
    assert dcgm.completed(gpu, monotonic()).sm_utilization_ratio is None


def test_an_answer_that_is_too_old_is_none(node: Node) -> None:
    dcgm = Dcgm(node.url, ErrorCounts())
    dcgm.ask()
    gpu = a_gpu(sm_utilization_ratio=None)
    assert dcgm.completed(gpu, monotonic() + STALE_SECONDS + 1) == gpu


def test_an_exporter_that_is_not_there_is_counted() -> None:
    errors = ErrorCounts()
    Dcgm("http://127.0.0.1:1/metrics", errors).ask()
    assert errors.by_fault() == {Fault.DCGM_UNREACHABLE: 1}


@pytest.mark.parametrize("text", [b"\xff\xfe", b"<html>not metrics</html>", b'name{x="1"} one'])
def test_an_answer_that_is_no_text_of_prometheus_is_counted(node: Node, text: bytes) -> None:
    errors = ErrorCounts()
    node.text = text
    Dcgm(node.url, errors).ask()
    assert errors.by_fault() == {Fault.DCGM_MALFORMED: 1}


@pytest.mark.parametrize("value", ["NaN", "-1", "9.2e18", "97.5", "+Inf"])
def test_a_share_that_cannot_be_true_is_absent(value: str) -> None:
    line = f'DCGM_FI_PROF_SM_ACTIVE{{UUID="GPU-0",{LABELS}}} {value}\n'
    assert read_activity(line) == {}


def test_instances_are_left_out_since_they_go_by_their_boards_uuid() -> None:
    line = f'DCGM_FI_PROF_SM_ACTIVE{{UUID="GPU-0",GPU_I_ID="3",{LABELS}}} 0.5\n'
    assert read_activity(line) == {}
