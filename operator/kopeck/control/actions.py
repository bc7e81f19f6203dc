"""Carrying out a step: deletions, annotations, then the Service, the revision and the pods."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from kopeck.api.job_key import JobKey
from kopeck.control.cache import Cache
from kopeck.kube.cluster import Cluster
from kopeck.kube.errors import RefusedError
from kopeck.plan.step import Step

# Pods are created in parallel, but one job does not take all connections.
_PODS_AT_ONCE = 8
# What still runs of a failed job cannot checkpoint any more.
_GRACE_SECONDS_OF_ENDED_PODS = 5


class Actions:
    """What a step asks of the cluster."""

    def __init__(self, cluster: Cluster, cache: Cache) -> None:
        self._cluster = cluster
        self._cache = cache

    async def carry_out(self, key: JobKey, step: Step) -> list[str]:
        """Do what the step asks; returns what the API server refused, in its own words.

        One refused pod must not hide the others. Other errors are raised: the pass is repeated.
        """
        for attempt in step.old_attempts:
            await self._cluster.delete_attempt(key, attempt, step.old_attempts_grace_seconds)
        for pod in step.ended_pods:
            await self._cluster.delete_pod(
                key.namespace, pod.name, pod.uid, _GRACE_SECONDS_OF_ENDED_PODS
            )
        for name, annotations in step.pod_annotations.items():
            await self._annotate(key, name, annotations)
        if step.nccl_config:
            return await self._create_named(step.nccl_config)
        if not step.pods or step.service is None or step.config is None:
            return []
        try:
            await self._cluster.apply_service(step.service)
            await self._cluster.create_owned("configmaps", step.config)
        except RefusedError as refused:
            return [str(refused)]
        return await self._create_pods(step.pods)

    async def _create_named(self, config_map: Mapping[str, Any]) -> list[str]:
        """The refusal of a ConfigMap that status is about to name, if there is one."""
        try:
            created = await self._cluster.create_owned("configmaps", config_map)
        except RefusedError as refused:
            return [str(refused)]
        name = config_map["metadata"]["name"]
        return [] if created else [f"ConfigMap {name} is being deleted; it is made again after it"]

    async def _annotate(self, key: JobKey, name: str, annotations: Mapping[str, str]) -> None:
        annotated = await self._cluster.annotate_pod(key.namespace, name, annotations)
        if annotated is not None:
            self._cache.see_pod(annotated, datetime.now(UTC))

    async def _create_pods(self, manifests: list[dict[str, Any]]) -> list[str]:
        limit = asyncio.Semaphore(_PODS_AT_ONCE)

        async def create(manifest: Mapping[str, Any]) -> str | None:
            async with limit:
                try:
                    created = await self._cluster.create_owned("pods", manifest)
                except RefusedError as refused:
                    return str(refused)
            if created is not None:
                self._cache.see_pod(created, datetime.now(UTC))
            return None

        outcomes = await asyncio.gather(*map(create, manifests))
        return [refusal for refusal in outcomes if refusal is not None]
