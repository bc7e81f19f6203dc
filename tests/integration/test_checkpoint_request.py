"""A user asks a running job for a checkpoint; worker 0's exporter answers as the test says."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.api_proxy import ApiProxy, Call, Forward
from tests.builders import a_job, a_report
from tests.fake_pods import end_trainer
from tests.operator_process import OperatorProcess
from tests.waiting import eventually
from tests.workplace import Workplace

REQUEST = "kopeck.dev/checkpoint-request"
SAVES = {"checkpoint": {"path": "/checkpoints", "everySteps": 1000}}


@dataclass
class Exporters:
    """An interception: what /progress says of a pod that no kubelet runs, by its name."""

    progress: dict[str, dict[str, Any]] = field(default_factory=dict)

    async def __call__(self, call: Call, forward: Forward) -> web.StreamResponse:
        for pod, progress in self.progress.items():
            if call.path.endswith(f"/pods/{pod}:9401/proxy/progress"):
                return web.json_response(progress)
        return await forward()


@pytest.fixture
def exporters() -> Exporters:
    return Exporters()


@pytest.fixture
def operator(
    workplace: Workplace, exporters: Exporters, tmp_path: Path
) -> Iterator[OperatorProcess]:
    """An operator whom no refresh of figures wakes up."""
    with ApiProxy(workplace.cluster.kubeconfig, tmp_path) as proxy:
        proxy.interception = exporters
        with OperatorProcess(proxy.kubeconfig, tmp_path, refresh_seconds=3600) as process:
            process.wait_until_in_sync()
            proxy.wait_until_watched()
            yield process


def ask(workplace: Workplace, name: str, request: str) -> None:
    annotations = {"metadata": {"annotations": {REQUEST: request}}}
    workplace.kube.patch(f"{workplace.jobs_path}/{name}", annotations)


def handed_over(workplace: Workplace, name: str, attempt: int = 0) -> list[str | None]:
    """The request that each pod of an attempt was handed."""
    pods = workplace.pods(name, attempt)
    return [pod["metadata"]["annotations"].get(REQUEST) for pod in pods]


def answered(workplace: Workplace, name: str) -> dict[str, Any]:
    request: dict[str, Any] = workplace.status(name).get("checkpointRequest", {})
    assert request.get("state") == "Saved", request
    return request


@pytest.mark.usefixtures("operator")
def test_a_request_reaches_worker_0_and_its_answer_the_status(
    workplace: Workplace, exporters: Exporters
) -> None:
    name = workplace.create(a_job(training=SAVES))
    first, _ = workplace.running_pods(name, attempt=0, count=2)
    progress = exporters.progress[first["metadata"]["name"]] = {"v": 1, "step": 11}
    ask(workplace, name, "before-upgrade")

    def is_handed_over() -> None:
        assert handed_over(workplace, name) == ["before-upgrade", None]

    eventually(is_handed_over)
    assert workplace.status(name)["checkpointRequest"] == {
        "name": "before-upgrade",
        "state": "Requested",
    }
    progress |= {"step": 14, "checkpointStep": 12, "checkpointRequest": "before-upgrade"}
    assert eventually(lambda: answered(workplace, name)) == {
        "name": "before-upgrade",
        "state": "Saved",
        "step": 12,
    }

    def is_told() -> None:
        events = workplace.kube.list(f"/api/v1/namespaces/{workplace.namespace}/events")
        assert [each["reason"] for each in events].count("CheckpointSaved") == 1

    eventually(is_told)


def test_a_request_outlives_its_attempt_and_an_operator(
    workplace: Workplace, exporters: Exporters, operator: OperatorProcess
) -> None:
    name = workplace.create(a_job(training=SAVES))
    _, second = workplace.running_pods(name, attempt=0, count=2)
    ask(workplace, name, "before-upgrade")

    def is_handed_over(attempt: int) -> None:
        assert handed_over(workplace, name, attempt) == ["before-upgrade", None]

    eventually(lambda: is_handed_over(0))
    operator.kill()
    end_trainer(workplace.kube, second, 137, a_report(checkpointStep=10))
    operator.start()
    first, _ = workplace.running_pods(name, attempt=1, count=2)
    eventually(lambda: is_handed_over(1))
    exporters.progress[first["metadata"]["name"]] = {
        "v": 1,
        "step": 15,
        "checkpointStep": 14,
        "checkpointRequest": "before-upgrade",
    }
    assert eventually(lambda: answered(workplace, name))["step"] == 14


@pytest.mark.usefixtures("operator")
def test_a_job_that_saves_nothing_refuses(workplace: Workplace) -> None:
    name = workplace.create(a_job())
    workplace.running_pods(name, attempt=0, count=2)
    ask(workplace, name, "now")

    def is_refused() -> None:
        assert workplace.status(name).get("checkpointRequest") == {
            "name": "now",
            "state": "Refused",
            "message": "spec.training.checkpoint is not set; set it",
        }

    eventually(is_refused)
    assert handed_over(workplace, name) == [None, None]
