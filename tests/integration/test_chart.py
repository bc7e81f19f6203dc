"""The chart: wrong values are refused by name, and the API server takes what it gives."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kopeck.api.crd import crd
from kopeck.api.job_key import JobKey
from kopeck.api.trainingjob import parse_spec
from kopeck.control.settings import OperatorSettings, read_settings
from kopeck.plan.pods import Attempt, Sidecar, worker_pods
from kopeck.pricing.book import PriceBook, read_price_book
from tests.builders import JOB_UID, a_job
from tests.chart import NAMESPACE, VALUES, install, is_of_rights, manifest, rendered, uninstall
from tests.cluster import ClusterError, LocalCluster
from tests.operator_process import PRICES
from tests.workplace import Workplace

pytestmark = pytest.mark.usefixtures("control_plane")  # where it cannot start, nor can helm
A_ROW = {"instanceType": "p5.48xlarge", "dollarsPerHour": "98.32"}
DCGM = "http://$(NODE_IP):9400/metrics"
WITHOUT_PRICES = {key: each for key, each in VALUES.items() if key != "priceBook"}


@pytest.fixture(scope="module")
def release(control_plane: LocalCluster) -> Iterator[LocalCluster]:
    """A cluster with the chart installed over what kubectl applied before."""
    install(control_plane.kubeconfig, VALUES, "--take-ownership", "--force-conflicts")
    yield control_plane
    uninstall(control_plane.kubeconfig)


def of_kind(kind: str, manifests: list[dict[str, Any]]) -> dict[str, Any]:
    (found,) = [each for each in manifests if each["kind"] == kind]
    return found


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"replicas": 2}, "additional properties 'replicas' not allowed"),
        ({"image": None}, "at '/image': got null, want string"),
        ({"image": ""}, "at '/image': minLength: got 0, want 1"),
        ({"config": {}}, "at '/config': missing property 'exporterImage'"),
        (
            {"config": {"exporterImage": "x", "refreshSecond": 5}},
            "at '/config': additional properties 'refreshSecond' not allowed",
        ),
        (
            {"config": {"exporterImage": "x", "refreshSeconds": 0}},
            "at '/config/refreshSeconds': minimum: got 0, want 1",
        ),
        (
            {"config": {"exporterImage": "x", "namespace": "elsewhere"}},
            "at '/config': additional properties 'namespace' not allowed",
        ),
        (
            {"config": {"exporterImage": "x", "dcgmEndpoint": "http://$(HOST_IP):9400/metrics"}},
            "at '/config/dcgmEndpoint': 'http://$(HOST_IP):9400/metrics' does not match pattern",
        ),
        ({"priceBook": {"prices": []}}, "at '/priceBook': missing property 'id'"),
        (
            {"priceBook": {"id": "x", "prices": [A_ROW | {"dollarsPerHour": 98.32}]}},
            "at '/priceBook/prices/0/dollarsPerHour': got number, want string",
        ),
        (
            {"priceBook": {"id": "x", "prices": [A_ROW | {"dollarPerHour": "1"}]}},
            "at '/priceBook/prices/0': additional properties 'dollarPerHour' not allowed",
        ),
        ({"nodeSelector": {"gpu": 1}}, "at '/nodeSelector/gpu': got number, want string"),
    ],
)
def test_wrong_values_are_refused_with_the_key_named(wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ClusterError) as refused:
        rendered(VALUES | wrong)
    assert sentence in str(refused.value)


def test_an_image_has_to_be_named() -> None:
    with pytest.raises(ClusterError, match="missing property 'image'"):
        rendered({key: each for key, each in VALUES.items() if key != "image"})


def test_a_kubernetes_that_is_too_old_is_refused() -> None:
    with pytest.raises(ClusterError, match=r"requires kubeVersion: >=1\.29\.0-0"):
        rendered(VALUES, "--kube-version=1.28.9")
    assert rendered(VALUES, "--kube-version=1.29.0-eks-1")


@pytest.mark.parametrize("values", [VALUES, WITHOUT_PRICES], ids=["prices", "no prices"])
def test_the_operator_reads_the_configuration_that_the_values_say(
    values: dict[str, Any], tmp_path: Path
) -> None:
    config = values["config"] | {"dcgmEndpoint": DCGM}
    manifests = rendered(values | {"config": config})
    for name, text in of_kind("ConfigMap", manifests)["data"].items():
        (tmp_path / name).write_text(text)
    settings = read_settings(tmp_path / "operator.yaml")
    book = tmp_path / "prices.yaml" if values == VALUES else None
    assert settings == OperatorSettings(
        exporter_image="localhost/kopeck:dev",
        price_book=book,
        namespace=NAMESPACE,
        port=9402,
        dcgm_endpoint=DCGM,
        refresh_seconds=1,
    )
    if book:
        assert read_price_book(book) == PriceBook.model_validate(PRICES)
    assert book or not (tmp_path / "prices.yaml").exists()


def test_prometheus_finds_every_worker_and_keeps_the_namespace_that_the_operator_tells() -> None:
    monitoring = rendered(VALUES, "--api-versions=monitoring.coreos.com/v1")
    workers = of_kind("PodMonitor", monitoring)["spec"]
    (pod,) = worker_pods(
        Attempt(JobKey("team", "llama", JOB_UID), 0, "0123456789", 1, Sidecar("exporter:1")),
        parse_spec(a_job()["spec"]),
        [0],
    )
    (endpoint,) = workers["podMetricsEndpoints"]
    assert endpoint["port"] in [each["name"] for each in pod["spec"]["initContainers"][0]["ports"]]
    (expression,) = workers["selector"]["matchExpressions"]
    assert expression["key"] in pod["metadata"]["labels"]
    assert workers["namespaceSelector"] == {"any": True}

    service = of_kind("Service", monitoring)
    operator = of_kind("ServiceMonitor", monitoring)["spec"]
    (endpoint,) = operator["endpoints"]
    assert endpoint["honorLabels"] is True
    assert endpoint["port"] in [each["name"] for each in service["spec"]["ports"]]
    assert operator["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()


def test_without_prometheus_operator_the_chart_has_none_of_its_kinds() -> None:
    kinds = {each["kind"] for each in rendered()}
    assert not kinds & {"PodMonitor", "ServiceMonitor", "PrometheusRule"}


def test_where_the_pod_may_run_and_what_it_may_use_are_values() -> None:
    chosen = {
        "imagePullSecrets": [{"name": "registry"}],
        "nodeSelector": {"pool": "system"},
        "tolerations": [{"key": "system", "operator": "Exists"}],
        "resources": {"limits": {"memory": "1Gi"}},
    }
    pod = of_kind("Deployment", rendered(VALUES | chosen))["spec"]["template"]["spec"]
    resources = pod["containers"][0]["resources"]
    assert {key: pod[key] for key in chosen if key != "resources"} == {
        key: each for key, each in chosen.items() if key != "resources"
    }
    assert resources["limits"] == {"memory": "1Gi"}


def test_definition_and_roles_are_those_for_plain_kubectl() -> None:
    manifests = rendered()
    definition = of_kind("CustomResourceDefinition", manifests)
    assert definition["metadata"].pop("annotations") == {"helm.sh/resource-policy": "keep"}
    assert definition == crd()
    example = yaml.safe_load_all(Path("examples/rbac.yaml").read_text())
    assert by_name(filter(is_of_rights, manifests)) == by_name(filter(is_of_rights, example))


def by_name(manifests: Iterable[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(each["kind"], each["metadata"]["name"]): each for each in manifests}


def test_the_same_values_again_change_nothing(release: LocalCluster) -> None:
    before = versions(release)
    assert len(before) == 9
    install(release.kubeconfig)
    assert versions(release) == before


def versions(release: LocalCluster) -> dict[str, Any]:
    """By name what changes with what an object asks for; its status may go on."""
    installed = manifest(release.kubeconfig)
    found = release.kubectl("get", "--filename=-", "--output=json", stdin=installed)
    kept = ("generation", "resourceVersion")
    return {
        f"{each['kind']}/{each['metadata']['name']}": next(
            each["metadata"][key] for key in kept if key in each["metadata"]
        )
        for each in json.loads(found)["items"]
    }


def test_other_prices_give_a_new_pod(release: LocalCluster) -> None:
    before = versions(release)
    book = PRICES | {"id": "next-book"}
    install(release.kubeconfig, VALUES | {"priceBook": book})
    after = versions(release)
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {"ConfigMap/kopeck", "Deployment/kopeck"}


def test_a_second_operator_is_refused(release: LocalCluster) -> None:
    with pytest.raises(ClusterError, match="cannot be imported into the current release"):
        install(release.kubeconfig, release="another")


def test_jobs_outlive_the_release(release: LocalCluster, workplace: Workplace) -> None:
    name = workplace.create(a_job())
    said = uninstall(release.kubeconfig)
    assert "CustomResourceDefinition" in said
    assert workplace.job(name)
    install(release.kubeconfig)
