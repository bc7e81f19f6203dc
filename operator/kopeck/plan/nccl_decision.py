"""What the pods of an attempt get for NCCL, decided once by the nodes that they may get.

Nothing of a platform is rendered unless all those nodes need the same: a wrong setting costs more
than a missing one. A decision names its ConfigMap, which is made before status holds the name.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kopeck.api import names
from kopeck.api.job_key import JobKey
from kopeck.api.status import EffectiveNccl
from kopeck.api.trainingjob import TrainingJobSpec
from kopeck.plan.candidate_nodes import GpuNode
from kopeck.plan.job_view import JobView
from kopeck.plan.nccl_agreement import Agreement, agreement_of
from kopeck.plan.own_topology import own_topology
from kopeck.plan.pod_facts import PodFacts
from kopeck.plan.pods import Attempt, Sidecar, worker_pods
from kopeck.plan.revision import canonical_json
from kopeck.plan.shared_objects import owned_config_map
from kopeck.topology.conf_file import conf_variables
from kopeck.topology.environment import TOPO_FILE, TOPOLOGY_PATH
from kopeck.topology.needs import ConfigMapMount
from kopeck.topology.writer import to_xml

TOPOLOGY_KEY = "topology.xml"
CONF_KEY = "nccl.conf"
_DIGEST_LENGTH = 10

ConfigMapRef = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True)
class Surroundings:
    """What the cluster has around a job whose attempt begins."""

    agreement: Agreement
    config_maps: Mapping[ConfigMapRef, Mapping[str, str] | None]
    """The data of those to read; None where there is none of that name."""


@dataclass(frozen=True)
class Hidden:
    """The API server shows nodes or ConfigMaps not to us: nothing can be decided."""

    refusal: str


@dataclass(frozen=True)
class NcclDecision:
    """What is written into status, and the ConfigMap that it names."""

    effective: EffectiveNccl
    config_map: dict[str, Any] | None
    is_platform_known: bool
    reason: str
    message: str


def awaits_decision(job: JobView, pods: Sequence[PodFacts]) -> bool:
    """Whether the attempt that status holds has GPUs, and nothing but a decision is to come first.

    `pods` are those of all attempts.
    """
    effective = job.status.effective
    if effective is None or effective.nccl or effective.populated or job.is_finished:
        return False
    if any(pod.attempt < job.status.attempt for pod in pods):
        return False
    return job.is_readable and job.spec.workers.has_nvidia_gpus


def agreement_on(job: JobView, nodes: Sequence[GpuNode]) -> Agreement:
    """What the nodes that suit the pods need. Raises SpecError where the spec cannot be run."""
    status, effective = job.status, job.status.effective
    if effective is None:
        raise AssertionError("an accepted job has status.effective")
    attempt = Attempt(job.key, status.attempt, effective.revision, effective.workers, Sidecar(""))
    (bare,) = worker_pods(attempt, job.spec, [0])
    return agreement_of(job.spec, bare, effective.workers, nodes)


def config_maps_to_read(job: JobView, agreement: Agreement) -> list[ConfigMapRef]:
    """The ConfigMaps that the decision on a job depends on: the user's and the provider's."""
    own = job.spec.nccl.topology_config_map
    provided = [(each.namespace, each.name) for each in _mounts(agreement)]
    return [*([(job.key.namespace, own.name)] if own else []), *provided]


def nccl_decision(job: JobView, surroundings: Surroundings) -> NcclDecision:
    """The decision on the attempt that status holds.

    Raises TopologyFileError where the user's is not there or would stop NCCL.
    """
    agreement = surroundings.agreement
    files, lacking = _files(job.key, job.spec, agreement, surroundings.config_maps)
    config_map = _config_map(job.key, files) if files else None
    needs = agreement.needs
    effective = EffectiveNccl(
        platform=agreement.platform,
        environment={TOPO_FILE: TOPOLOGY_PATH} if TOPOLOGY_KEY in files else {},
        resources=needs.resources if needs else {},
        config_map=config_map["metadata"]["name"] if config_map else None,
        files=sorted(files),
    )
    missing = [*(needs.missing if needs else ()), *lacking]
    return NcclDecision(
        effective,
        config_map,
        is_platform_known=needs is not None,
        reason="FabricIncomplete" if missing else agreement.reason,
        message=". Missing: ".join(filter(None, (agreement.message, "; ".join(missing)))),
    )


def vendor_settings(config_map: Mapping[str, Any] | None) -> dict[str, str]:
    """What the provider's file sets, of the ConfigMap of a decision."""
    return conf_variables(config_map["data"].get(CONF_KEY, "")) if config_map else {}


def _mounts(agreement: Agreement) -> list[ConfigMapMount]:
    return agreement.needs.config_maps if agreement.needs else []


def _files(
    key: JobKey,
    spec: TrainingJobSpec,
    agreement: Agreement,
    config_maps: Mapping[ConfigMapRef, Mapping[str, str] | None],
) -> tuple[dict[str, str], list[str]]:
    """The files by their key, and what the cluster lacks of them."""
    files: dict[str, str] = {}
    missing = []
    for each in agreement.needs.topology_files if agreement.needs else ():
        if each.instance_type.machine:
            files[TOPOLOGY_KEY] = to_xml(each.instance_type.machine)
    if own := spec.nccl.topology_config_map:
        files[TOPOLOGY_KEY] = own_topology(own, config_maps[key.namespace, own.name])
    for mount in _mounts(agreement):
        data = config_maps[mount.namespace, mount.name] or {}
        if mount.key in data:
            files[CONF_KEY] = data[mount.key]
        else:
            where = f"ConfigMap {mount.namespace}/{mount.name} with the key {mount.key}"
            missing.append(f"the cluster has no {where}: {mount.reason}; deploy the provider's")
    return files, missing


def _config_map(key: JobKey, files: dict[str, str]) -> dict[str, Any]:
    """Named by what it holds: an attempt with the same files shares it."""
    digest = hashlib.sha256(canonical_json(files).encode()).hexdigest()[:_DIGEST_LENGTH]
    return owned_config_map(key, names.nccl_config_name(key.name, key.uid, digest), files)
