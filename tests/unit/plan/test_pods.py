"""The pods of an attempt."""

from typing import Any

import pytest

from kopeck.api.errors import SpecError
from kopeck.api.job_key import JobKey
from kopeck.api.status import EffectiveNccl
from kopeck.api.trainingjob import TrainingJobSpec, parse_spec
from kopeck.plan.pods import Attempt, Sidecar, worker_pods
from tests.builders import JOB_UID, a_job

KEY = JobKey("research", "llama", JOB_UID)
RESTRICTED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def a_spec(**spec: Any) -> TrainingJobSpec:
    return parse_spec(a_job(**spec)["spec"])


def with_template(**template: Any) -> TrainingJobSpec:
    return a_spec(workers={"template": template})


def an_attempt(
    number: int = 0,
    workers: int = 2,
    nccl: EffectiveNccl | None = None,
    dcgm_endpoint: str | None = None,
) -> Attempt:
    sidecar = Sidecar("kopeck-exporter:1", dcgm_endpoint)
    return Attempt(KEY, number, "0123456789", workers, sidecar, nccl)


def pods_of(
    spec: TrainingJobSpec,
    *,
    attempt: int = 0,
    workers: int = 2,
    nccl: EffectiveNccl | None = None,
    dcgm_endpoint: str | None = None,
) -> list[dict[str, Any]]:
    return worker_pods(an_attempt(attempt, workers, nccl, dcgm_endpoint), spec, range(workers))


def first_pod(spec: TrainingJobSpec, **how: Any) -> dict[str, Any]:
    return pods_of(spec, **how)[0]


def trainer(pod: dict[str, Any]) -> dict[str, Any]:
    (found,) = [each for each in pod["spec"]["containers"] if each["name"] == "trainer"]
    return found


def exporter(pod: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = pod["spec"]["initContainers"][0]
    return found


def environment(container: dict[str, Any]) -> dict[str, Any]:
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in container["env"]}


def test_the_trainer_learns_who_it_is_and_where_its_peers_meet() -> None:
    assert environment(trainer(first_pod(a_spec(), attempt=3))) == {
        "KOPECK_CONFIG": "/etc/kopeck/config.json",
        "KOPECK_NAMESPACE": "research",
        "KOPECK_JOB": "llama",
        "KOPECK_JOB_UID": JOB_UID,
        "KOPECK_REVISION": "0123456789",
        "KOPECK_ATTEMPT": "3",
        "KOPECK_WORKER": {"fieldRef": {"fieldPath": "metadata.labels['kopeck.dev/worker']"}},
        "KOPECK_POD_IP": {"fieldRef": {"fieldPath": "status.podIP"}},
        "KOPECK_WORKERS": "2",
        "KOPECK_PROCESSES_PER_WORKER": "1",
        "KOPECK_MASTER_HOST": "llama-abcde-a3-w0.llama-abcde.research.svc",
        "KOPECK_MASTER_PORT": "29503",
        "KOPECK_RENDEZVOUS_ID": "abcdef-3",
        "KOPECK_RENDEZVOUS_SECONDS": "1800",
        "KOPECK_HANG_SECONDS": "600",
        "KOPECK_GRACE_SECONDS": "120",
        "KOPECK_SOCKET": "/run/kopeck/telemetry.sock",
        "KOPECK_PODINFO": "/etc/podinfo/annotations",
        "KOPECK_TERMINATION_LOG": "/dev/termination-log",
    }


def test_what_the_user_tells_nccl_reaches_the_trainer_alone() -> None:
    pod = first_pod(a_spec(nccl={"env": {"NCCL_DEBUG": "INFO", "FI_EFA_FORK_SAFE": "1"}}))
    told = environment(trainer(pod))
    assert (told["NCCL_DEBUG"], told["FI_EFA_FORK_SAFE"]) == ("INFO", "1")
    assert "NCCL_DEBUG" not in environment(exporter(pod))


def test_the_template_is_merged_over_what_nccl_is_told() -> None:
    container = {"name": "trainer", "env": [{"name": "NCCL_DEBUG", "value": "WARN"}]}
    spec = a_spec(
        nccl={"env": {"NCCL_DEBUG": "INFO"}},
        workers={"template": {"spec": {"containers": [container]}}},
    )
    variables = trainer(first_pod(spec))["env"]
    assert [each["value"] for each in variables if each["name"] == "NCCL_DEBUG"] == ["WARN"]


def test_kopecks_own_variables_cannot_be_told_to_nccl() -> None:
    with pytest.raises(SpecError, match=r"spec.nccl.env: sets KOPECK_WORKER, which is kopeck's"):
        pods_of(a_spec(nccl={"env": {"KOPECK_WORKER": "0"}}))


def test_no_rank_gets_an_environment_that_a_launcher_inside_would_multiply() -> None:
    assert not [name for name in environment(trainer(first_pod(a_spec()))) if "PET_" in name]


@pytest.mark.parametrize(("attempt", "port"), [(0, "29500"), (99, "29599"), (100, "29500")])
def test_the_port_changes_with_the_attempt_so_that_stale_peers_cannot_join(
    attempt: int, port: str
) -> None:
    found = environment(trainer(first_pod(a_spec(), attempt=attempt)))
    assert found["KOPECK_MASTER_PORT"] == port
    assert found["KOPECK_RENDEZVOUS_ID"] == f"abcdef-{attempt}"


def test_pods_of_an_attempt_differ_in_name_hostname_and_worker_label_only() -> None:
    first, second = pods_of(a_spec())
    assert first["spec"]["hostname"] == first["metadata"]["name"] == "llama-abcde-a0-w0"
    second["metadata"]["name"] = second["spec"]["hostname"] = "llama-abcde-a0-w0"
    second["metadata"]["labels"]["kopeck.dev/worker"] = "0"
    assert first == second


def test_a_pod_goes_with_its_job() -> None:
    (owner,) = first_pod(a_spec())["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("TrainingJob", JOB_UID, True)


ALL_OF_NCCL = EffectiveNccl(
    platform="azure-nd",
    environment={"NCCL_TOPO_FILE": "/etc/kopeck/topology.xml"},
    resources={"rdma/ib": "8", "hugepages-2Mi": "5120Mi"},
    config_map="llama-abcde-nccl-0123456789",
    files=["nccl.conf", "topology.xml"],
)


@pytest.mark.parametrize("nccl", [None, ALL_OF_NCCL])
def test_pods_meet_the_restricted_standard(nccl: EffectiveNccl | None) -> None:
    # https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted
    spec = first_pod(a_spec(), nccl=nccl)["spec"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for each in (*spec["containers"], *spec["initContainers"]):
        assert each["securityContext"].items() >= RESTRICTED.items()
    allowed = {"configMap", "emptyDir", "downwardAPI", "projected"}
    assert {kind for volume in spec["volumes"] for kind in volume} <= allowed | {"name"}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()


def test_pods_hold_no_credentials_of_the_cluster() -> None:
    assert first_pod(a_spec())["spec"]["automountServiceAccountToken"] is False


def test_the_exporter_is_a_native_sidecar_that_keeps_the_guaranteed_class() -> None:
    sidecar = exporter(first_pod(a_spec()))
    assert sidecar["restartPolicy"] == "Always"
    assert sidecar["resources"]["requests"] == sidecar["resources"]["limits"]
    assert "readinessProbe" not in sidecar
    assert sidecar["ports"] == [{"name": "metrics", "containerPort": 9401}]


def test_a_pod_is_never_restarted_alone() -> None:
    assert first_pod(a_spec())["spec"]["restartPolicy"] == "Never"


def test_gpus_are_limits_and_ranks_but_not_the_sidecars() -> None:
    pod = first_pod(a_spec(workers={"gpusPerWorker": 8, "gpuResource": "amd.com/gpu"}))
    assert trainer(pod)["resources"]["limits"] == {"amd.com/gpu": "8"}
    assert environment(trainer(pod))["KOPECK_PROCESSES_PER_WORKER"] == "8"
    assert environment(exporter(pod))["NVIDIA_VISIBLE_DEVICES"] == "void"


@pytest.mark.parametrize("nccl", [None, ALL_OF_NCCL])
def test_every_mount_has_its_volume(nccl: EffectiveNccl | None) -> None:
    spec = first_pod(a_spec(), nccl=nccl)["spec"]
    mounted = {
        mount["name"]
        for each in (*spec["containers"], *spec["initContainers"])
        for mount in each["volumeMounts"]
    }
    assert mounted == {volume["name"] for volume in spec["volumes"]}


def test_a_lost_node_lets_its_pods_go_within_half_a_minute_unless_the_user_says_otherwise() -> None:
    ours = first_pod(a_spec())["spec"]["tolerations"]
    assert {each["tolerationSeconds"] for each in ours} == {30}
    theirs = [{"key": "gpu", "operator": "Exists"}]
    pod = first_pod(with_template(spec={"tolerations": theirs}))
    assert pod["spec"]["tolerations"] == theirs


def test_the_launcher_learns_of_the_users_grace_period() -> None:
    pod = first_pod(with_template(spec={"terminationGracePeriodSeconds": 600}))
    assert pod["spec"]["terminationGracePeriodSeconds"] == 600
    assert environment(trainer(pod))["KOPECK_GRACE_SECONDS"] == "600"


def test_the_users_labels_and_annotations_stand_beside_ours() -> None:
    metadata = {"labels": {"team": "nlp"}, "annotations": {"note": "7b"}}
    pod = first_pod(with_template(metadata=metadata))["metadata"]
    assert pod["labels"]["team"] == "nlp"
    assert pod["labels"]["kopeck.dev/job"] == "llama"
    assert pod["annotations"]["note"] == "7b"


def test_the_users_environment_is_appended() -> None:
    containers = [{"name": "trainer", "env": [{"name": "NCCL_DEBUG", "value": "INFO"}]}]
    found = environment(trainer(first_pod(with_template(spec={"containers": containers}))))
    assert found["NCCL_DEBUG"] == "INFO"
    assert found["KOPECK_JOB"] == "llama"


def test_the_users_init_containers_run_after_the_exporter() -> None:
    pod = first_pod(with_template(spec={"initContainers": [{"name": "fetch", "image": "curl"}]}))
    assert [each["name"] for each in pod["spec"]["initContainers"]] == ["kopeck-exporter", "fetch"]


@pytest.mark.parametrize("kind", ["containers", "initContainers"])
def test_environment_that_is_kopecks_is_refused(kind: str) -> None:
    variable = {"name": "KOPECK_ATTEMPT", "value": "0"}
    name = "trainer" if kind == "containers" else "kopeck-exporter"
    spec = with_template(spec={kind: [{"name": name, "env": [variable]}]})
    with pytest.raises(SpecError) as refused:
        pods_of(spec)
    assert str(refused.value) == (
        f"spec.workers.template.spec.{kind}: sets KOPECK_ATTEMPT, which is kopeck's;"
        " use a variable without the prefix KOPECK_"
    )


def test_a_pod_that_asks_for_no_workers_is_no_pod() -> None:
    assert worker_pods(an_attempt(), a_spec(), []) == []


def test_what_was_decided_for_nccl_reaches_the_trainer_alone() -> None:
    pod = first_pod(a_spec(workers={"gpusPerWorker": 8}), nccl=ALL_OF_NCCL)
    told = environment(trainer(pod))
    assert told["NCCL_TOPO_FILE"] == "/etc/kopeck/topology.xml"
    assert trainer(pod)["resources"]["limits"] == {
        "nvidia.com/gpu": "8",
        "rdma/ib": "8",
        "hugepages-2Mi": "5120Mi",
    }
    bare = first_pod(a_spec(workers={"gpusPerWorker": 8}))
    assert exporter(pod) == exporter(bare)


def test_the_topology_file_lies_beside_the_configuration_in_one_read_only_volume() -> None:
    spec = first_pod(a_spec(), nccl=ALL_OF_NCCL)["spec"]
    config, *_ = spec["volumes"]
    topology = {
        "name": "llama-abcde-nccl-0123456789",
        "items": [{"key": "topology.xml", "path": "topology.xml"}],
    }
    assert config["projected"]["sources"] == [
        {"configMap": {"name": "llama-abcde-0123456789"}},
        {"configMap": topology},
    ]
    mount = {"name": "kopeck-config", "mountPath": "/etc/kopeck", "readOnly": True}
    assert mount in spec["containers"][0]["volumeMounts"]


def test_the_providers_file_is_mounted_where_nccl_looks_for_it() -> None:
    nccl = EffectiveNccl(config_map="llama-abcde-nccl-0123456789", files=["nccl.conf"])
    spec = first_pod(a_spec(), nccl=nccl)["spec"]
    (volume,) = [each for each in spec["volumes"] if each["name"] == "kopeck-nccl"]
    assert volume["configMap"]["name"] == "llama-abcde-nccl-0123456789"
    assert {
        "name": "kopeck-nccl",
        "mountPath": "/etc/nccl.conf",
        "subPath": "nccl.conf",
        "readOnly": True,
    } in spec["containers"][0]["volumeMounts"]
    assert spec["volumes"][0] == {
        "name": "kopeck-config",
        "configMap": {"name": "llama-abcde-0123456789"},
    }


def test_a_decision_that_adds_nothing_changes_no_pod() -> None:
    spec = a_spec(workers={"gpusPerWorker": 8})
    assert pods_of(spec, nccl=EffectiveNccl(platform="other")) == pods_of(spec)


def test_the_users_own_values_win_over_what_was_decided() -> None:
    own = {"name": "trainer", "env": [{"name": "NCCL_TOPO_FILE", "value": "/mine.xml"}]}
    spec = a_spec(
        nccl={"env": {"NCCL_DEBUG": "INFO"}},
        workers={
            "resources": {"limits": {"rdma/ib": "4"}},
            "template": {"spec": {"containers": [own]}},
        },
    )
    found = trainer(first_pod(spec, nccl=ALL_OF_NCCL))
    assert environment(found)["NCCL_TOPO_FILE"] == "/mine.xml"
    assert environment(found)["NCCL_DEBUG"] == "INFO"
    assert found["resources"]["limits"]["rdma/ib"] == "4"
    told = a_spec(nccl={"env": {"NCCL_TOPO_FILE": "/mine.xml"}})
    variables = environment(trainer(first_pod(told, nccl=ALL_OF_NCCL)))
    assert variables["NCCL_TOPO_FILE"] == "/mine.xml"


DCGM = "http://$(NODE_IP):9400/metrics"


def a_gpu_spec(**workers: Any) -> TrainingJobSpec:
    return a_spec(workers={"gpusPerWorker": 2} | workers)


def test_the_exporter_asks_the_dcgm_exporter_of_its_own_node() -> None:
    asked = exporter(first_pod(a_gpu_spec(), dcgm_endpoint=DCGM))
    names = [each["name"] for each in asked["env"]]
    # Kubernetes fills in variables that stand before the one that names them.
    assert names.index("NODE_IP") < names.index("KOPECK_DCGM_ENDPOINT")
    assert environment(asked)["NODE_IP"] == {"fieldRef": {"fieldPath": "status.hostIP"}}
    assert environment(asked)["KOPECK_DCGM_ENDPOINT"] == DCGM


def test_dcgm_is_asked_for_nvidias_gpus_only_and_if_the_administrator_says_where() -> None:
    amd = a_gpu_spec(gpuResource="amd.com/gpu")
    for pod in (
        first_pod(a_gpu_spec()),
        first_pod(a_spec(), dcgm_endpoint=DCGM),
        first_pod(amd, dcgm_endpoint=DCGM),
    ):
        assert not {"NODE_IP", "KOPECK_DCGM_ENDPOINT"} & environment(exporter(pod)).keys()


def with_claimed_gpus() -> TrainingJobSpec:
    claims = [{"name": "gpus", "resourceClaimTemplateName": "two-gpus"}]
    container = {"name": "trainer", "resources": {"claims": [{"name": "gpus"}]}}
    template = {"spec": {"resourceClaims": claims, "containers": [container]}}
    return a_spec(workers={"template": template}, telemetry={"gpuClaim": "gpus"})


def test_the_sidecar_shares_the_claim_of_the_gpus_and_samples_in_place_of_the_trainer() -> None:
    pod = first_pod(with_claimed_gpus(), dcgm_endpoint=DCGM)
    assert pod["spec"]["resourceClaims"] == [
        {"name": "gpus", "resourceClaimTemplateName": "two-gpus"}
    ]
    assert exporter(pod)["resources"]["claims"] == [{"name": "gpus"}]
    assert exporter(pod)["resources"]["requests"] == exporter(pod)["resources"]["limits"]
    for container in (trainer(pod), exporter(pod)):
        assert environment(container)["KOPECK_GPU_SAMPLING"] == "sidecar"
    assert environment(exporter(pod))["KOPECK_DCGM_ENDPOINT"] == DCGM


def test_without_a_claim_the_sampler_is_where_the_device_plugin_puts_the_gpus() -> None:
    pod = first_pod(a_gpu_spec())
    assert "claims" not in exporter(pod)["resources"]
    for container in (trainer(pod), exporter(pod)):
        assert "KOPECK_GPU_SAMPLING" not in environment(container)
