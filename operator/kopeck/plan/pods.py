"""The pods of an attempt: trainer, exporter sidecar, volumes, environment."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kopeck.api import names
from kopeck.api.errors import SpecError
from kopeck.api.job_key import JobKey
from kopeck.api.status import EffectiveNccl
from kopeck.api.trainingjob import TrainingJobSpec
from kopeck.plan.nccl_rendering import (
    config_volume,
    nccl_environment,
    nccl_mounts,
    nccl_volumes,
)
from kopeck.plan.owner import owner_reference
from kopeck.plan.template import merged

_CONFIG_FOLDER = "/etc/kopeck"
_SOCKET_FOLDER = "/run/kopeck"
_PODINFO_FOLDER = "/etc/podinfo"
_MASTER_PORT = 29_500
_GRACE_SECONDS = 120
_HANG_SECONDS = 600  # NCCL's own patience; a checkpoint fits into it
_LOST_NODE_SECONDS = 30
_NODE_TROUBLES = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_USER_ID = 1000
_RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
}
# Requests equal limits: a sidecar without would take the Guaranteed class from every pod.
_EXPORTER_RESOURCES = {"cpu": "100m", "memory": "64Mi"}


@dataclass(frozen=True)
class Sidecar:
    """What the administrator says of the exporter."""

    image: str
    dcgm_endpoint: str | None = None
    """URL of the DCGM exporter of the pod's node, which is $(NODE_IP) in it."""


@dataclass(frozen=True)
class Attempt:
    """What all pods of one attempt have in common."""

    key: JobKey
    number: int
    revision: str
    workers: int
    sidecar: Sidecar
    nccl: EffectiveNccl | None = None
    """None for attempts without GPUs, and before it is decided."""

    @property
    def labels(self) -> dict[str, str]:
        return {
            names.LABEL_JOB: self.key.name,
            names.LABEL_JOB_UID: self.key.uid,
            names.LABEL_ATTEMPT: str(self.number),
            names.LABEL_REVISION: self.revision,
        }

    def pod_name(self, worker: int) -> str:
        return names.pod_name(self.key.name, self.key.uid, self.number, worker)


def worker_pods(
    attempt: Attempt, spec: TrainingJobSpec, workers: Sequence[int]
) -> list[dict[str, Any]]:
    """The pods of the given workers. Raises SpecError where the template takes what is ours."""
    if not workers:
        return []
    shared = merged(_pod_spec(attempt, spec), spec.workers.template_spec)
    metadata = spec.workers.template.metadata if spec.workers.template else None
    labels = (metadata.labels if metadata else {}) | attempt.labels
    annotations = metadata.annotations if metadata else {}
    _refuse_own_environment(spec)
    return [_pod(attempt, worker, shared, labels, annotations) for worker in workers]


def _pod(
    attempt: Attempt,
    worker: int,
    shared: dict[str, Any],
    labels: dict[str, str],
    annotations: dict[str, str],
) -> dict[str, Any]:
    name = attempt.pod_name(worker)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": attempt.key.namespace,
            "labels": labels | {names.LABEL_WORKER: str(worker)},
            "annotations": annotations
            | {"kubectl.kubernetes.io/default-container": names.TRAINER_CONTAINER},
            "ownerReferences": [owner_reference(attempt.key)],
        },
        "spec": shared | {"hostname": name},
    }


def _pod_spec(attempt: Attempt, spec: TrainingJobSpec) -> dict[str, Any]:
    key = attempt.key
    return {
        "subdomain": names.service_name(key.name, key.uid),
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": _GRACE_SECONDS,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER_ID,
            "runAsGroup": _USER_ID,
            "fsGroup": _USER_ID,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "tolerations": [
            {
                "key": trouble,
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": _LOST_NODE_SECONDS,
            }
            for trouble in _NODE_TROUBLES
        ],
        "initContainers": [_exporter(attempt, spec)],
        "containers": [_trainer(attempt, spec)],
        "volumes": _volumes(attempt),
    }


def _trainer(attempt: Attempt, spec: TrainingJobSpec) -> dict[str, Any]:
    container: dict[str, Any] = {
        "name": names.TRAINER_CONTAINER,
        "image": spec.image,
        "command": ["python3", "-m", "kopeck_trainer"],
        "env": [
            *_trainer_environment(attempt, spec),
            _worker_index(),
            _pod_address(),
            *_gpu_sampling(spec),
            *nccl_environment(attempt.nccl, spec.nccl.env),
        ],
        "resources": _trainer_resources(attempt, spec),
        "terminationMessagePath": "/dev/termination-log",
        "securityContext": _RESTRICTED,
        "volumeMounts": [
            {"name": "kopeck-config", "mountPath": _CONFIG_FOLDER, "readOnly": True},
            {"name": "kopeck-telemetry", "mountPath": _SOCKET_FOLDER},
            {"name": "kopeck-podinfo", "mountPath": _PODINFO_FOLDER, "readOnly": True},
            {"name": "kopeck-shared-memory", "mountPath": "/dev/shm"},  # noqa: S108  in the pod
            *nccl_mounts(attempt.nccl),
        ],
    }
    if spec.image_pull_policy:
        container["imagePullPolicy"] = spec.image_pull_policy
    return container


def _trainer_environment(attempt: Attempt, spec: TrainingJobSpec) -> list[dict[str, str]]:
    key = attempt.key
    service = names.service_name(key.name, key.uid)
    grace_seconds = spec.workers.template_spec.get("terminationGracePeriodSeconds", _GRACE_SECONDS)
    values = {
        "KOPECK_CONFIG": f"{_CONFIG_FOLDER}/config.json",
        "KOPECK_NAMESPACE": key.namespace,
        "KOPECK_JOB": key.name,
        "KOPECK_JOB_UID": key.uid,
        "KOPECK_REVISION": attempt.revision,
        "KOPECK_ATTEMPT": str(attempt.number),
        "KOPECK_WORKERS": str(attempt.workers),
        "KOPECK_PROCESSES_PER_WORKER": str(spec.workers.processes),
        "KOPECK_MASTER_HOST": f"{attempt.pod_name(0)}.{service}.{key.namespace}.svc",
        "KOPECK_MASTER_PORT": str(_MASTER_PORT + attempt.number % 100),
        "KOPECK_RENDEZVOUS_ID": f"{key.uid}-{attempt.number}",
        "KOPECK_RENDEZVOUS_SECONDS": str(spec.run_policy.startup_deadline_seconds),
        "KOPECK_HANG_SECONDS": str(_HANG_SECONDS),
        "KOPECK_GRACE_SECONDS": str(grace_seconds),
        "KOPECK_SOCKET": f"{_SOCKET_FOLDER}/telemetry.sock",
        "KOPECK_PODINFO": f"{_PODINFO_FOLDER}/annotations",
        "KOPECK_TERMINATION_LOG": "/dev/termination-log",
    }
    return [{"name": name, "value": value} for name, value in values.items()]


def _worker_index() -> dict[str, Any]:
    """From the label, so that the bodies of an attempt's pods differ in three places only."""
    path = f"metadata.labels['{names.LABEL_WORKER}']"
    return {"name": "KOPECK_WORKER", "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _pod_address() -> dict[str, Any]:
    """By which the launcher tells the interface of the pod network from others."""
    return {"name": "KOPECK_POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}


def _gpu_sampling(spec: TrainingJobSpec) -> list[dict[str, str]]:
    """Of both containers: only one of them samples, by default the trainer."""
    moved = {"name": "KOPECK_GPU_SAMPLING", "value": "sidecar"}
    return [moved] if spec.telemetry.gpu_claim else []


def _dcgm(attempt: Attempt, spec: TrainingJobSpec) -> list[dict[str, Any]]:
    """For jobs with NVIDIA's GPUs. The variable that the URL may contain stands before it."""
    endpoint = attempt.sidecar.dcgm_endpoint
    if not endpoint or not (spec.workers.has_nvidia_gpus or spec.telemetry.gpu_claim):
        return []
    return [
        {"name": "NODE_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}},
        {"name": "KOPECK_DCGM_ENDPOINT", "value": endpoint},
    ]


def _trainer_resources(attempt: Attempt, spec: TrainingJobSpec) -> dict[str, Any]:
    workers = spec.workers
    resources = workers.resources.model_dump(exclude_defaults=True) if workers.resources else {}
    decided = attempt.nccl.resources if attempt.nccl else {}
    limits = decided | resources.get("limits", {})
    if workers.gpus_per_worker:
        limits |= {workers.gpu_resource: str(workers.gpus_per_worker)}
    return resources | {"limits": limits} if limits else resources


def _exporter(attempt: Attempt, spec: TrainingJobSpec) -> dict[str, Any]:
    """A native sidecar: it starts first and never keeps a finished pod alive."""
    values = {
        "KOPECK_JOB": attempt.key.name,
        "KOPECK_ATTEMPT": str(attempt.number),
        "KOPECK_PROCESSES_PER_WORKER": str(spec.workers.processes),
        "KOPECK_SOCKET": f"{_SOCKET_FOLDER}/telemetry.sock",
        "KOPECK_PODINFO": f"{_PODINFO_FOLDER}/annotations",
        "NVIDIA_VISIBLE_DEVICES": "void",
    }
    environment = [{"name": name, "value": value} for name, value in values.items()]
    return {
        "name": names.EXPORTER_CONTAINER,
        "image": attempt.sidecar.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-m", "kopeck_exporter"],
        "restartPolicy": "Always",
        "env": [
            *environment,
            _worker_index(),
            *_gpu_sampling(spec),
            *_dcgm(attempt, spec),
        ],
        "ports": [{"name": names.EXPORTER_PORT_NAME, "containerPort": names.EXPORTER_PORT}],
        "resources": _exporter_resources(spec),
        "securityContext": _RESTRICTED | {"readOnlyRootFilesystem": True},
        "volumeMounts": [
            {"name": "kopeck-telemetry", "mountPath": _SOCKET_FOLDER},
            {"name": "kopeck-podinfo", "mountPath": _PODINFO_FOLDER, "readOnly": True},
        ],
    }


def _exporter_resources(spec: TrainingJobSpec) -> dict[str, Any]:
    resources: dict[str, Any] = {"requests": _EXPORTER_RESOURCES, "limits": _EXPORTER_RESOURCES}
    claim = spec.telemetry.gpu_claim
    return resources | {"claims": [{"name": claim}]} if claim else resources


def _volumes(attempt: Attempt) -> list[dict[str, Any]]:
    config = names.revision_config_name(attempt.key.name, attempt.key.uid, attempt.revision)
    annotations = {"path": "annotations", "fieldRef": {"fieldPath": "metadata.annotations"}}
    return [
        {"name": "kopeck-config"} | config_volume(config, attempt.nccl),
        {"name": "kopeck-telemetry", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}},
        {"name": "kopeck-shared-memory", "emptyDir": {"medium": "Memory"}},
        {"name": "kopeck-podinfo", "downwardAPI": {"items": [annotations]}},
        *nccl_volumes(attempt.nccl),
    ]


def _refuse_own_environment(spec: TrainingJobSpec) -> None:
    _refuse_own("spec.nccl.env", spec.nccl.env)
    for kind in ("containers", "initContainers"):
        for container in spec.workers.template_spec.get(kind, []):
            _refuse_own(f"spec.workers.template.spec.{kind}", _variables(container.get("env")))


def _refuse_own(field: str, variables: Iterable[str]) -> None:
    for name in variables:
        if name.startswith("KOPECK_"):
            instead = "use a variable without the prefix KOPECK_"
            raise SpecError(field, f"sets {name}, which is kopeck's", instead)


def _variables(env: Any) -> list[str]:
    """Names in a list of which nobody has checked the shape."""
    items = env if isinstance(env, list) else []
    return [str(each.get("name")) for each in items if isinstance(each, Mapping)]
