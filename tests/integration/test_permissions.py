"""The operator works with what the chart's roles allow, and asks for nothing else."""

import re
from pathlib import Path
from typing import Any

import yaml

from tests.builders import a_report
from tests.chart import NAMESPACE, is_of_rights, rendered
from tests.fake_pods import end_trainer, path_of
from tests.operator_process import OperatorProcess
from tests.platforms import (
    CHOSEN,
    PLATFORMS,
    a_job_on,
    create_nodes,
    create_providers_config_map,
)
from tests.waiting import eventually
from tests.workplace import Workplace

# Whose pods need a ConfigMap of another namespace.
(ON_OCI,) = [each for each in PLATFORMS if each.platform == "oci"]


def test_a_job_lives_its_life_under_the_roles_of_the_chart(
    workplace: Workplace, tmp_path: Path
) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    rights = yaml.safe_dump_all([namespace, *filter(is_of_rights, rendered())])
    workplace.cluster.kubectl("apply", "--filename=-", stdin=rights)
    create_providers_config_map(workplace.kube)
    nodes = create_nodes(workplace.cluster, ON_OCI)
    kubeconfig = kubeconfig_of_service_account(workplace.cluster, tmp_path)
    prices = [{"instanceType": ON_OCI.instance_type, "dollarsPerHour": "3.60"}]
    book = {"id": "test-book", "prices": prices}
    with OperatorProcess(kubeconfig, tmp_path, prices=book) as operator:
        operator.wait_until_in_sync()
        job = a_job_on({CHOSEN: ON_OCI.name})
        job["spec"]["training"]["checkpoint"] = {"path": "/checkpoints", "everySteps": 1000}
        job["metadata"]["annotations"] = {"kopeck.dev/checkpoint-request": "first"}
        name = workplace.create(job)
        first, _ = workplace.running_pods(name, attempt=0, count=2)
        workplace.kube.delete(path_of(first))
        pods = workplace.running_pods(name, attempt=1, count=2)
        eventually(lambda: is_asked_for_a_checkpoint(workplace, name))
        for pod in pods:
            end_trainer(workplace.kube, pod, 0, a_report())
        workplace.reaches(name, "Complete")

        def is_charged() -> None:
            assert "spent" in workplace.status(name)["cost"]
            assert "hourlyRate" not in workplace.status(name)["cost"]

        eventually(is_charged)
        forbidden = re.findall(r'kopeck_api_requests_total\{code="403".*', operator.metrics())
        assert forbidden == [], operator.log
        assert "forbidden" not in operator.log.lower()
        assert workplace.status(name)["effective"]["nccl"]["files"] == ["nccl.conf"]
    workplace.cluster.kubectl("delete", "node", *nodes)


def is_asked_for_a_checkpoint(workplace: Workplace, name: str) -> None:
    first, _ = workplace.pods(name, attempt=1)
    assert first["metadata"]["annotations"]["kopeck.dev/checkpoint-request"] == "first"


def kubeconfig_of_service_account(cluster: Any, folder: Path) -> Path:
    """A kubeconfig with a token of kopeck-system/kopeck."""
    token = cluster.kubectl("create", "token", "kopeck", "--namespace=kopeck-system").strip()
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    file = folder / "kubeconfig"
    file.write_text(yaml.safe_dump(config))
    return file
