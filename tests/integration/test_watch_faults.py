"""Faults between operator and API server: it stays the same process, misses and repeats nothing."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.api_proxy import (
    ABORT,
    CLEAN_END,
    EXPIRED,
    HALF_A_LINE,
    SILENCE,
    ApiProxy,
    Call,
    Refusals,
    StreamFault,
    in_stream_error,
)
from tests.builders import a_job, a_report
from tests.fake_pods import end_trainer, path_of
from tests.operator_process import OperatorProcess
from tests.waiting import eventually
from tests.workplace import Workplace

# kopf leaves a stream that has been silent for 70 s.
_SECONDS_FOR_SILENCE = 240


@pytest.fixture
def proxy(workplace: Workplace, tmp_path: Path) -> Iterator[ApiProxy]:
    with ApiProxy(workplace.cluster.kubeconfig, tmp_path) as running:
        yield running


@pytest.fixture
def operator(proxy: ApiProxy, tmp_path: Path) -> Iterator[OperatorProcess]:
    """An operator of the test's own, which no refresh of figures wakes up."""
    with OperatorProcess(proxy.kubeconfig, tmp_path, refresh_seconds=3600) as process:
        process.wait_until_in_sync()
        proxy.wait_until_watched()
        yield process


@contextmanager
def all_goes_on(workplace: Workplace, operator: OperatorProcess) -> Iterator[None]:
    """After the block, one process follows a job from before it and one from after it."""
    pid = operator.pid
    workplace.create(a_job("before"))
    _, second = workplace.running_pods("before", attempt=0, count=2)
    yield
    end_trainer(workplace.kube, second, 137, a_report())
    workplace.create(a_job("after"))
    workplace.running_pods("after", attempt=0, count=2)
    workplace.running_pods("before", attempt=1, count=2)
    assert workplace.status("before")["restarts"] == {"failures": 1, "total": 1}
    assert (operator.pid, operator.is_running) == (pid, True)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(EXPIRED, id="410"),
        pytest.param(in_stream_error(500, "InternalError"), id="500"),
        pytest.param(HALF_A_LINE, id="half-a-line"),
        pytest.param(CLEAN_END, id="clean-end"),
        pytest.param(ABORT, id="abort"),
    ],
)
def test_nothing_is_missed_after_a_broken_watch(
    workplace: Workplace, proxy: ApiProxy, operator: OperatorProcess, fault: StreamFault
) -> None:
    with all_goes_on(workplace, operator):
        proxy.break_watches(fault)


def is_list_of_kopf(call: Call) -> bool:
    return (
        call.is_from_kopf and call.path.endswith(("/pods", "/trainingjobs")) and not call.is_watch
    )


def is_watch(call: Call) -> bool:
    return call.is_watch


@pytest.mark.parametrize("status", [401, 403, 404, 410, 429, 500])
@pytest.mark.parametrize(
    ("end", "next_request"),
    [
        pytest.param(EXPIRED, is_list_of_kopf, id="list"),
        pytest.param(CLEAN_END, is_watch, id="watch"),
    ],
)
def test_nothing_is_missed_after_refused_lists_and_watches(
    workplace: Workplace,
    proxy: ApiProxy,
    operator: OperatorProcess,
    end: StreamFault,
    next_request: Callable[[Call], bool],
    status: int,
) -> None:
    refusals = Refusals(next_request, status, times=2)

    def all_were_met() -> None:
        assert refusals.are_used_up

    with all_goes_on(workplace, operator):
        proxy.interception = refusals
        proxy.break_watches(end)
        eventually(all_were_met)


def test_a_silent_watch_is_left_for_a_new_one(
    workplace: Workplace, proxy: ApiProxy, operator: OperatorProcess
) -> None:
    with all_goes_on(workplace, operator):
        proxy.break_watches(SILENCE)
        workplace.create(a_job("meanwhile"))
        workplace.reaches("meanwhile", "Running", seconds=_SECONDS_FOR_SILENCE)


def test_pods_that_vanish_in_a_watch_gap_give_a_new_attempt(
    workplace: Workplace, proxy: ApiProxy, operator: OperatorProcess
) -> None:
    name = workplace.create(a_job())
    pods = workplace.running_pods(name, attempt=0, count=2)
    proxy.break_watches(SILENCE)
    for pod in pods:
        workplace.kube.delete(path_of(pod), grace_seconds=0)
    proxy.break_watches(EXPIRED)
    workplace.running_pods(name, attempt=1, count=2)
    assert workplace.status(name)["restartReason"] == "PodLost"
    assert workplace.status(name)["restarts"] == {"failures": 0, "total": 1}


@pytest.mark.parametrize("is_last", [False, True], ids=["one-of-two", "the-last"])
def test_a_job_that_is_deleted_in_a_watch_gap_costs_no_more(
    workplace: Workplace, proxy: ApiProxy, operator: OperatorProcess, *, is_last: bool
) -> None:
    name = workplace.create(a_job())
    if not is_last:
        workplace.create(a_job("other"))
    workplace.running_pods(name, attempt=0, count=2)
    uid = workplace.job(name)["metadata"]["uid"]

    def is_alone() -> None:
        assert len(workplace.kube.get("/apis/kopeck.dev/v1alpha1/trainingjobs")["items"]) == 1

    if is_last:
        eventually(is_alone)
    proxy.break_watches(SILENCE)
    workplace.kube.delete(f"{workplace.jobs_path}/{name}")

    def pods_are_gone() -> None:
        assert workplace.pods(name) == []

    eventually(pods_are_gone)
    proxy.break_watches(EXPIRED)

    def all_is_charged() -> None:
        segments = workplace.ledger_of(uid)["segments"]
        ends = [segment["estimatedEnd"] for segment in segments.values()]
        assert ends == [True, True], json.dumps(segments)

    eventually(all_is_charged, seconds=60)


def each_write_once(namespace: str) -> Callable[[Call], bool]:
    """Matches each write in a namespace when it is sent for the first time."""
    sent: set[Call] = set()

    def matches(call: Call) -> bool:
        if call in sent or not (call.is_write and call.names(namespace)):
            return False
        sent.add(call)
        return True

    return matches


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param({"status": 429, "retry_after_seconds": 1}, id="429"),
        pytest.param({"status": 500}, id="500"),
        pytest.param({"status": 500, "although_done": True}, id="500-although-done"),
    ],
)
def test_a_job_completes_once_though_each_of_its_writes_is_first_answered_by_an_error(
    workplace: Workplace, proxy: ApiProxy, operator: OperatorProcess, fault: dict[str, Any]
) -> None:
    proxy.interception = Refusals(each_write_once(workplace.namespace), **fault)
    name = workplace.create(a_job())
    _, second = workplace.running_pods(name, attempt=0, count=2)
    end_trainer(workplace.kube, second, 137, a_report())
    for pod in workplace.running_pods(name, attempt=1, count=2):
        end_trainer(workplace.kube, pod, 0, a_report())
    status = workplace.reaches(name, "Complete")
    assert status["attempt"] == 1
    assert status["restarts"] == {"failures": 1, "total": 1}
    assert len(workplace.ledger(name)["segments"]) == 4
    created = Counter(
        json.loads(write.call.body)["metadata"]["name"]
        for write in proxy.writes
        if write.status == 201 and write.call.names(workplace.namespace)
    )
    assert set(created.values()) == {1}, created
    assert operator.is_running
