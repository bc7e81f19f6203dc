"""The example trains in real pods, and its dollars are right wherever one looks."""

import re
from fractions import Fraction
from typing import Any

import pytest

from tests.asking import answer_of, queried
from tests.e2e.conftest import Installation
from tests.e2e.in_pods import log_of
from tests.e2e.jobs import the_example
from tests.spend import recounted_dollars
from tests.waiting import eventually
from tests.workplace import Workplace

_EXPORTER_PORT = 9401
_PRICE = Fraction("3.60")


def test_the_example_trains_compiled_in_two_restricted_pods_and_its_dollars_agree(
    installation: Installation, workplace: Workplace
) -> None:
    name = workplace.create(the_example())
    pods = workplace.running_pods(name, attempt=0, count=2, seconds=120)
    assert {pod["spec"]["nodeName"] for pod in pods} == {"node-1", "node-2"}
    for pod in pods:
        assert [each["name"] for each in pod["spec"]["initContainers"]] == ["kopeck-exporter"]
    eventually(lambda: unit_costs_agree(installation, workplace, name, pods), seconds=300)

    status = workplace.reaches(name, "Complete", seconds=300)
    training = status["training"]
    assert training["samples"] == 100 * 16
    assert training["step"] == 100
    assert training["compileMode"] == "default"
    assert training["compileSeconds"] > 0
    assert (training["graphBreaks"], training["recompiles"]) == (0, 0)
    losses = [float(each) for each in re.findall(r"loss (\d+\.\d+)", log_of(workplace, pods[0]))]
    assert training["loss"] < losses[0] - 1
    eventually(lambda: spend_is_recounted(installation, workplace, name))


def unit_costs_agree(
    installation: Installation, workplace: Workplace, name: str, pods: list[dict[str, Any]]
) -> None:
    """Marginal dollars per sample: status, the exporters themselves, Prometheus."""
    cost = workplace.status(name).get("cost", {})
    assert "marginal" in cost.get("dollarsPerSample", {})
    in_status = float(cost["dollarsPerSample"]["marginal"])
    rate = sum(exported(pod, "kopeck_hourly_rate_dollars") for pod in pods)
    speed = sum(exported(pod, "kopeck_samples_per_second") for pod in pods)
    assert speed > 0
    by_exporters = rate / speed / 3600
    labels = f'namespace="{workplace.namespace}",training_job="{name}"'
    of_operator = value_of(installation, f'kopeck_dollars_per_sample{{{labels},basis="marginal"}}')
    of_workers = value_of(
        installation,
        f"sum(kopeck_hourly_rate_dollars{{{labels}}})"
        f" / sum(kopeck_samples_per_second{{{labels}}}) / 3600",
    )
    for other in (by_exporters, of_operator, of_workers):
        assert other == pytest.approx(in_status, rel=0.01)


def exported(pod: dict[str, Any], metric: str) -> float:
    """A metric of a pod's exporter, asked directly."""
    address = f"http://{pod['status']['podIP']}:{_EXPORTER_PORT}/metrics"
    for line in answer_of(address).text.splitlines():
        if line.startswith(f"{metric}{{"):
            return float(line.rsplit(" ", 1)[1])
    raise AssertionError(f"{metric} is absent")


def value_of(installation: Installation, query: str) -> float:
    """Prometheus' answer."""
    found = queried(installation.prometheus_url, query)
    assert found, query
    return float(found[0]["value"][1])


def spend_is_recounted(installation: Installation, workplace: Workplace, name: str) -> None:
    """Spend in status, by the pods' own timestamps; all_in, in status and in Prometheus."""
    nodes = {each["metadata"]["name"]: each for each in workplace.kube.list("/api/v1/nodes")}
    pods = workplace.pods(name)
    assert all(pod["status"]["phase"] == "Succeeded" for pod in pods)
    recount = recounted_dollars(pods, nodes, _PRICE)
    status = workplace.status(name)
    assert float(status["cost"]["spent"]) == pytest.approx(float(recount), rel=0.001)
    all_in = float(status["cost"]["dollarsPerSample"]["allIn"])
    assert all_in == pytest.approx(float(recount) / 1600, rel=0.01)
    labels = f'namespace="{workplace.namespace}",training_job="{name}"'
    told = value_of(installation, f'kopeck_dollars_per_sample{{{labels},basis="all_in"}}')
    assert told == pytest.approx(all_in, rel=0.01)
