"""A bad manifest is refused by the API server, with a sentence that says what to write."""

import json
import secrets
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from kopeck.api.job_key import JobKey
from kopeck.api.trainingjob import parse_spec
from kopeck.plan.pods import Attempt, Sidecar, worker_pods
from tests.builders import JOB_UID, a_job
from tests.cluster import ClusterError, existing_cluster
from tests.integration.conftest import install_crd
from tests.waiting import eventually

TRAINING = {"steps": 20, "globalBatchSize": 16, "microBatchSize": 4}
CLAIMED_GPUS = {
    "telemetry": {"gpuClaim": "gpus"},
    "workers": {
        "template": {
            "spec": {
                "resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": "two-gpus"}],
                "containers": [{"name": "trainer", "resources": {"claims": [{"name": "gpus"}]}}],
            }
        },
    },
}

Kubectl = Callable[..., str]


@pytest.fixture(scope="module")
def kubectl(request: pytest.FixtureRequest) -> Kubectl:
    """Of the cluster in KUBECONFIG, if it can be reached, else of our own."""
    existing = existing_cluster()
    if existing is None:
        kubectl_of_ours: Kubectl = request.getfixturevalue("control_plane").kubectl
        return kubectl_of_ours
    install_crd(existing)
    return existing.kubectl


@pytest.fixture(scope="module")
def namespace(kubectl: Kubectl) -> Iterator[str]:
    name = f"test-{secrets.token_hex(3)}"
    kubectl("create", "namespace", name)
    yield name
    kubectl("delete", "namespace", name, "--wait=false")


def refusal(kubectl: Kubectl, namespace: str, job: dict[str, Any]) -> str:
    with pytest.raises(ClusterError) as refused:
        apply(kubectl, namespace, job)
    return str(refused.value)


def apply(kubectl: Kubectl, namespace: str, job: dict[str, Any]) -> None:
    kubectl("apply", "--namespace", namespace, "--filename=-", stdin=yaml.safe_dump(job))


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (
            {"entrypoint": None},
            "set exactly one of entrypoint (a builder, as package.module:function) and command",
        ),
        (
            {"command": ["python3", "train.py"]},
            "set exactly one of entrypoint (a builder, as package.module:function) and command",
        ),
        ({"args": ["--fast"]}, "args need a command"),
        ({"training": None}, "entrypoint needs training"),
        (
            {"training": TRAINING | {"globalBatchSize": 20}},
            "globalBatchSize 20 is no multiple of microBatchSize × ranks (4 × 2); use 24",
        ),
        (
            {"workers": {"replicas": 3}},
            "globalBatchSize 16 is no multiple of microBatchSize × ranks (4 × 3); use 24",
        ),
        (
            {"workers": {"processesPerWorker": 3}},
            "globalBatchSize 16 is no multiple of microBatchSize × ranks (4 × 6); use 24",
        ),
        (
            {"workers": {"gpusPerWorker": 8}},
            "globalBatchSize 16 is no multiple of microBatchSize × ranks (4 × 16); use 64",
        ),
        ({"training": TRAINING | {"samples": 320}}, "set exactly one of steps and samples"),
        ({"training": TRAINING | {"steps": None}}, "set exactly one of steps and samples"),
        (
            {"training": {"samples": 100, "globalBatchSize": 16, "microBatchSize": 4}},
            "samples 100 is no multiple of globalBatchSize; use 112",
        ),
        ({"training": TRAINING | {"steps": 0}}, "greater than or equal to 1"),
        ({"training": TRAINING | {"microBatchSize": -4}}, "greater than or equal to 1"),
        ({"training": TRAINING | {"globalBatchSize": 0}}, "greater than or equal to 1"),
        ({"workers": {"replicas": 0}}, "greater than or equal to 1"),
        ({"workers": {"replicas": -1}}, "greater than or equal to 1"),
        ({"workers": {"gpusPerWorker": -1}}, "greater than or equal to 0"),
        ({"training": TRAINING | {"maxGradNorm": 0}}, "should be greater than 0"),
        ({"training": TRAINING | {"precision": "fp64"}}, 'supported values: "bf16", "fp32"'),
        (
            {"training": TRAINING | {"sharding": {"cpuOffload": True}}},
            "cpuOffload is not built, every step would wait for weights and gradients to",
        ),
        (
            {"training": TRAINING | {"activations": {"mode": "offload"}}},
            'supported values: "none", "full", "selective", "budget"',
        ),
        (
            {"training": TRAINING | {"activations": {"mode": "budget"}}},
            "memoryBudget and mode budget go together; write both or none of them",
        ),
        (
            {"training": TRAINING | {"activations": {"mode": "full", "memoryBudget": 0.5}}},
            "memoryBudget and mode budget go together; write both or none of them",
        ),
        (
            {
                "training": TRAINING
                | {
                    "activations": {"mode": "budget", "memoryBudget": 0.5},
                    "compile": {"mode": "off"},
                }
            },
            "activations.mode budget is the compiler's, and compile.mode is off",
        ),
        ({"entrypoint": "no colon"}, "spec.entrypoint in body should match"),
        ({"trainning": {}}, 'unknown field "spec.trainning"'),
        ({"training": TRAINING | {"batch": 4}}, 'unknown field "spec.training.batch"'),
        (
            {"training": TRAINING | {"profile": {"everySeconds": 59}}},
            "windows are at least 60 seconds apart; write 60 or more, or 0 for none",
        ),
        (
            {"training": TRAINING | {"checkpoint": {"path": "relative", "everySteps": 5}}},
            "spec.training.checkpoint.path in body should match '^/'",
        ),
        (
            {"workers": {"template": {"spec": {"hostname": "mine"}}}},
            "kopeck sets hostname and subdomain",
        ),
        (
            {"workers": {"template": {"spec": {"restartPolicy": "Always"}}}},
            "kopeck restarts all workers together; remove restartPolicy",
        ),
        (
            {
                "workers": {
                    "template": {"spec": {"containers": [{"name": "trainer", "image": "x"}]}}
                }
            },
            "kopeck starts the container trainer itself; set image, command and args in spec",
        ),
        (
            {"workers": {"template": {"metadata": {"labels": {"kopeck.dev/job": "x"}}}}},
            "labels under kopeck.dev/ are kopeck's; use a prefix of your own",
        ),
        (
            {"nccl": {"env": {"NCCL_DEBUG": "INFO", "KOPECK_WORKER": "0"}}},
            "variables with the prefix KOPECK_ are kopeck's; use another name",
        ),
        (
            {"nccl": {"topology": "configMap"}},
            "topologyConfigMap and topology configMap go together; write both or none of them",
        ),
        (
            {"nccl": {"topologyConfigMap": {"name": "mine"}}},
            "topologyConfigMap and topology configMap go together; write both or none of them",
        ),
        (
            {
                "nccl": {
                    "topology": "configMap",
                    "topologyConfigMap": {"name": "mine"},
                    "env": {"NCCL_TOPO_FILE": "/mine.xml"},
                }
            },
            "NCCL_TOPO_FILE and topologyConfigMap name two topology files; write one of them",
        ),
        ({"nccl": {"platform": "ibm"}}, 'supported values: "auto", "aws-efa", "azure-nd"'),
        (
            {"telemetry": {"gpuClaim": "gpus"}},
            "telemetry.gpuClaim is no claim of workers.template.spec.resourceClaims; name one",
        ),
        (
            {
                "telemetry": {"gpuClaim": "gpus"},
                "workers": {"template": {"spec": {"resourceClaims": [{"name": "nics"}]}}},
            },
            "telemetry.gpuClaim is no claim of workers.template.spec.resourceClaims; name one",
        ),
        ({"telemetry": {"gpuSampling": "sidecar"}}, 'unknown field "spec.telemetry.gpuSampling"'),
        ({"nccl": {"topology": "off"}}, 'supported values: "auto", "none", "configMap"'),
    ],
)
def test_a_bad_spec_is_refused_with_what_to_write(
    kubectl: Kubectl, namespace: str, spec: dict[str, Any], sentence: str
) -> None:
    assert sentence in refusal(kubectl, namespace, drop_unset(a_job(**spec)))


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("a" * 45, "metadata.name is too long for the names of its pods; use at most 44"),
        ("1st", "metadata.name must begin with a letter"),
        ("a.b", "metadata.name must begin with a letter and hold lower-case letters, digits"),
    ],
)
def test_a_name_that_its_pods_cannot_have_is_refused(
    kubectl: Kubectl, namespace: str, name: str, sentence: str
) -> None:
    assert sentence in refusal(kubectl, namespace, a_job(name))


def test_the_longest_name_and_a_plain_job_are_taken(kubectl: Kubectl, namespace: str) -> None:
    apply(kubectl, namespace, a_job("a" * 44))
    apply(kubectl, namespace, a_job("plain"))
    own = {"topology": "configMap", "topologyConfigMap": {"name": "mine"}, "platform": "rdma"}
    apply(kubectl, namespace, a_job("own-topology", nccl=own))


def test_the_api_server_takes_a_job_with_claimed_gpus_and_the_pods_it_becomes(
    kubectl: Kubectl, namespace: str
) -> None:
    job = a_job("claimed", **CLAIMED_GPUS)
    apply(kubectl, namespace, job)
    key = JobKey(namespace, "claimed", JOB_UID)
    sidecar = Sidecar("exporter:1", "http://$(NODE_IP):9400/metrics")
    attempt = Attempt(key, 0, "0123456789", 1, sidecar)
    (pod,) = worker_pods(attempt, parse_spec(job["spec"]), [0])
    del pod["metadata"]["ownerReferences"]
    arguments = ("--filename=-", "--dry-run=server", "--output=json")
    eventually(lambda: there_is_an_account(kubectl, namespace))
    made = json.loads(kubectl("create", *arguments, stdin=json.dumps(pod)))["spec"]
    assert made["resourceClaims"][0]["name"] == "gpus"
    for container in (made["containers"][0], made["initContainers"][0]):
        assert container["resources"]["claims"] == [{"name": "gpus"}]
    fields = [each.get("valueFrom") for each in made["initContainers"][0]["env"]]
    assert "status.hostIP" in [each["fieldRef"]["fieldPath"] for each in fields if each]


def there_is_an_account(kubectl: Kubectl, namespace: str) -> None:
    """Without one no pod is admitted; the controller manager makes it soon after a namespace."""
    accounts = kubectl("get", "serviceaccounts", "--namespace", namespace, "--output=name")
    assert "serviceaccount/default" in accounts


def drop_unset(node: Any) -> Any:
    if not isinstance(node, dict):
        return node
    return {key: drop_unset(each) for key, each in node.items() if each is not None}
