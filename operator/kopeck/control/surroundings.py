"""Reading what the decision on an attempt's pods depends on: nodes with GPUs, and ConfigMaps."""

from collections.abc import Mapping, Sequence

from kopeck.control.gpu_nodes import GpuNodes
from kopeck.kube.cluster import Cluster
from kopeck.kube.errors import RefusedError
from kopeck.plan.job_view import JobView
from kopeck.plan.nccl_decision import (
    Hidden,
    Surroundings,
    agreement_on,
    awaits_decision,
    config_maps_to_read,
)
from kopeck.plan.pod_facts import PodFacts


class SurroundingsReader:
    """Reads for jobs whose attempt begins, and nothing for others."""

    def __init__(self, cluster: Cluster, nodes: GpuNodes) -> None:
        self._cluster = cluster
        self._nodes = nodes

    async def of(self, job: JobView, pods: Sequence[PodFacts]) -> Surroundings | Hidden | None:
        """None where no decision waits for them. Raises SpecError where the spec cannot be run."""
        if not awaits_decision(job, pods):
            return None
        try:
            agreement = agreement_on(job, await self._nodes.all())
            config_maps = {
                (namespace, name): await self._data(namespace, name)
                for namespace, name in config_maps_to_read(job, agreement)
            }
        except RefusedError as refused:
            return Hidden(str(refused))
        return Surroundings(agreement, config_maps)

    async def _data(self, namespace: str, name: str) -> Mapping[str, str] | None:
        found = await self._cluster.config_map(namespace, name)
        return None if found is None else found.get("data") or {}
