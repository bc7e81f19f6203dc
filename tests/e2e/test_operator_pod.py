"""The operator as the chart runs it, in a pod of its own."""

from typing import Any

from tests.chart import NAMESPACE
from tests.e2e.conftest import Installation
from tests.e2e.jobs import a_small_training
from tests.kube_client import KubeClient
from tests.waiting import eventually
from tests.workplace import Workplace

_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_SELECTOR = "app.kubernetes.io/name=kopeck"
_HOLD = "kopeck.dev/hold-for-test"


def test_an_operator_that_is_told_to_end_ends_by_itself_and_the_next_one_goes_on(
    installation: Installation, workplace: Workplace
) -> None:
    kube = workplace.kube
    (operator,) = kube.list(_PODS, _SELECTOR)
    log = installation.cluster.kubectl("logs", "deployment/kopeck", f"--namespace={NAMESPACE}")
    assert "in sync, watching" in log
    name = workplace.create(a_small_training(steps=40))
    workplace.running_pods(name, attempt=0, count=2, seconds=120)
    assert exit_code_of_deleted(kube, operator) == 0
    status = workplace.reaches(name, "Complete", seconds=240)
    assert status["restarts"]["total"] == 0
    (successor,) = kube.list(_PODS, _SELECTOR)
    assert successor["metadata"]["uid"] != operator["metadata"]["uid"]


def exit_code_of_deleted(kube: KubeClient, pod: dict[str, Any]) -> int:
    """Of the operator within its grace period of 10 s; SIGKILL after it would make this 137."""
    path = f"{_PODS}/{pod['metadata']['name']}"
    kube.patch(path, {"metadata": {"finalizers": [_HOLD]}})
    kube.delete(path)

    def ended() -> int:
        (container,) = kube.get(path)["status"]["containerStatuses"]
        assert "terminated" in container["state"], container
        code: int = container["state"]["terminated"]["exitCode"]
        return code

    code = eventually(ended)
    kube.patch(path, {"metadata": {"finalizers": None}})
    return code
