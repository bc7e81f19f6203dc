"""The nodes with GPUs, listed for all jobs that begin at about the same time."""

import asyncio
from collections.abc import Callable
from time import monotonic

from kopeck.kube.cluster import Cluster
from kopeck.plan.candidate_nodes import GpuNode, gpu_node

# Young enough for a node pool that was just made, old enough for jobs that come together.
_KEPT_SECONDS = 10.0


class GpuNodes:
    """A list that is read again when it is asked for and old."""

    def __init__(self, cluster: Cluster, clock: Callable[[], float] = monotonic) -> None:
        self._cluster = cluster
        self._clock = clock
        self._nodes: list[GpuNode] = []
        self._listed_at_seconds: float | None = None
        self._one_at_a_time = asyncio.Lock()

    async def all(self) -> list[GpuNode]:
        """As of some seconds ago at most."""
        async with self._one_at_a_time:
            if not self._is_young():
                began = self._clock()
                self._nodes = [
                    node
                    async for manifests in self._cluster.all_nodes()
                    for manifest in manifests
                    if (node := gpu_node(manifest))
                ]
                self._listed_at_seconds = began
            return self._nodes

    def _is_young(self) -> bool:
        listed = self._listed_at_seconds
        return listed is not None and self._clock() - listed < _KEPT_SECONDS
