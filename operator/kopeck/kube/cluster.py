"""The verbs that kopeck uses on a cluster, and no others: RBAC is written from this file."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

from kopeck.api import names
from kopeck.api.job_key import JobKey
from kopeck.kube.api import APPLY_PATCH, MERGE_PATCH, Api
from kopeck.kube.errors import AlreadyExistsError, NotFoundError, RefusedError

_JOBS = f"/apis/{names.API_VERSION}/trainingjobs"
_CHUNK = "500"


def _job_path(key: JobKey) -> str:
    return f"/apis/{names.API_VERSION}/namespaces/{key.namespace}/trainingjobs/{key.name}"


def _core_path(namespace: str, resource: str, name: str = "") -> str:
    return f"/api/v1/namespaces/{namespace}/{resource}" + (f"/{name}" if name else "")


class Cluster:
    """The cluster that kopeck works on."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def job(self, key: JobKey) -> dict[str, Any] | None:
        """The job, read now; None if it is gone or another one has its name."""
        try:
            job: dict[str, Any] = await self._api.request("GET", _job_path(key))
        except NotFoundError:
            return None
        return job if job["metadata"]["uid"] == key.uid else None

    async def all_jobs(self) -> tuple[list[dict[str, Any]], str]:
        """All jobs of the cluster, and the resource version that they are of."""
        answer = await self._api.request("GET", _JOBS)
        return answer["items"], answer["metadata"]["resourceVersion"]

    async def has_jobs(self) -> bool:
        """Whether there is any job in the cluster."""
        answer = await self._api.request("GET", _JOBS, query={"limit": "1"})
        return bool(answer["items"])

    async def pods_of(self, key: JobKey) -> list[dict[str, Any]]:
        """The job's pods, read now. Scans the namespace: labels are not indexed."""
        query = {"labelSelector": f"{names.LABEL_JOB_UID}={key.uid}"}
        answer = await self._api.request("GET", _core_path(key.namespace, "pods"), query=query)
        pods: list[dict[str, Any]] = answer["items"]
        return pods

    async def all_pods(self) -> AsyncIterator[tuple[list[dict[str, Any]], str]]:
        """All pods of ours in chunks, each with the resource version of the list."""
        async for answer in self._chunks("/api/v1/pods", {"labelSelector": names.LABEL_JOB}):
            yield answer["items"], answer["metadata"]["resourceVersion"]

    async def write_status(
        self, key: JobKey, resource_version: str, patch: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The job after a merge patch of its status. Raises ConflictError for an old version."""
        body = {"metadata": {"resourceVersion": resource_version}, "status": patch}
        path = f"{_job_path(key)}/status"
        job: dict[str, Any] = await self._api.request("PATCH", path, body, content_type=MERGE_PATCH)
        return job

    async def apply_service(self, service: Mapping[str, Any]) -> None:
        metadata = service["metadata"]
        await self._api.request(
            "PATCH",
            _core_path(metadata["namespace"], "services", metadata["name"]),
            service,
            query={"fieldManager": "kopeck", "force": "true"},
            content_type=APPLY_PATCH,
        )

    async def create_owned(
        self, resource: str, manifest: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        """What was created, or what our job owns under that name already.

        None where an object of that name is being deleted: to be asked again later.
        Raises RefusedError where the name is another owner's.
        """
        namespace, name = manifest["metadata"]["namespace"], manifest["metadata"]["name"]
        created: dict[str, Any]
        try:
            created = await self._api.request("POST", _core_path(namespace, resource), manifest)
        except AlreadyExistsError as taken:
            try:
                created = await self._api.request("GET", _core_path(namespace, resource, name))
            except NotFoundError:
                return None
            if not _same_owner(manifest, created):
                said = f"{resource} {name} belongs to another owner; delete or rename it"
                raise RefusedError(409, taken.reason, said) from None
            return None if "deletionTimestamp" in created["metadata"] else created
        return created

    async def delete_attempt(self, key: JobKey, attempt: int, grace_seconds: int | None) -> None:
        """Delete all pods of an attempt in one request."""
        selector = f"{names.LABEL_JOB_UID}={key.uid},{names.LABEL_ATTEMPT}={attempt}"
        await self._api.request(
            "DELETE",
            _core_path(key.namespace, "pods"),
            _delete_options(grace_seconds),
            query={"labelSelector": selector},
        )

    async def delete_pod(
        self, namespace: str, name: str, uid: str, grace_seconds: int | None
    ) -> None:
        """Delete this pod and no later one of its name."""
        options = _delete_options(grace_seconds) | {"preconditions": {"uid": uid}}
        try:
            await self._api.request("DELETE", _core_path(namespace, "pods", name), options)
        except NotFoundError:
            return

    async def annotate_pod(
        self, namespace: str, name: str, annotations: Mapping[str, str]
    ) -> dict[str, Any] | None:
        """The pod with the annotations set; None if it is gone."""
        body = {"metadata": {"annotations": annotations}}
        path = _core_path(namespace, "pods", name)
        try:
            pod: dict[str, Any] = await self._api.request(
                "PATCH", path, body, content_type=MERGE_PATCH
            )
        except NotFoundError:
            return None
        return pod

    async def node(self, name: str) -> dict[str, Any] | None:
        """A node, or None if it is gone."""
        try:
            node: dict[str, Any] = await self._api.request("GET", f"/api/v1/nodes/{name}")
        except NotFoundError:
            return None
        return node

    async def all_nodes(self) -> AsyncIterator[list[dict[str, Any]]]:
        """All nodes in chunks."""
        async for answer in self._chunks("/api/v1/nodes", {}):
            yield answer["items"]

    async def _chunks(self, path: str, query: Mapping[str, str]) -> AsyncIterator[dict[str, Any]]:
        """The answers to a list that is too long for one."""
        query = {**query, "limit": _CHUNK}
        while True:
            answer: dict[str, Any] = await self._api.request("GET", path, query=query)
            yield answer
            if not answer["metadata"].get("continue"):
                return
            query = query | {"continue": answer["metadata"]["continue"]}

    async def progress(self, namespace: str, pod: str) -> dict[str, Any]:
        """/progress of a pod's exporter, through the API server: reachable from everywhere."""
        path = _core_path(namespace, "pods", f"{pod}:{names.EXPORTER_PORT}/proxy/progress")
        report: dict[str, Any] = await self._api.request("GET", path, attempts=1)
        return report

    async def config_map(self, namespace: str, name: str) -> dict[str, Any] | None:
        """A ConfigMap, or None if there is none of that name."""
        try:
            found: dict[str, Any] = await self._api.request(
                "GET", _core_path(namespace, "configmaps", name)
            )
        except NotFoundError:
            return None
        return found

    async def config_maps(self, namespace: str, label: str) -> list[dict[str, Any]]:
        """All ConfigMaps of a namespace that carry a label."""
        answer = await self._api.request(
            "GET", _core_path(namespace, "configmaps"), query={"labelSelector": label}
        )
        found: list[dict[str, Any]] = answer["items"]
        return found

    async def write_config_map(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Create a ConfigMap, or replace the version that it names. Raises ConflictError."""
        metadata = manifest["metadata"]
        exists = "resourceVersion" in metadata
        path = _core_path(metadata["namespace"], "configmaps", metadata["name"] if exists else "")
        written: dict[str, Any] = await self._api.request(
            "PUT" if exists else "POST", path, manifest
        )
        return written

    async def ensure_namespace(self, name: str) -> None:
        """Raises RefusedError where it is missing and may not be created."""
        try:
            await self._api.request("GET", f"/api/v1/namespaces/{name}")
        except NotFoundError:
            manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            await self._api.request("POST", "/api/v1/namespaces", manifest)

    async def create_event(self, namespace: str, event: Mapping[str, Any]) -> None:
        await self._api.request("POST", _core_path(namespace, "events"), event)


def _delete_options(grace_seconds: int | None) -> dict[str, Any]:
    options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
    return options if grace_seconds is None else options | {"gracePeriodSeconds": grace_seconds}


def _same_owner(manifest: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    ours = manifest["metadata"]["ownerReferences"][0]["uid"]
    owners = found["metadata"].get("ownerReferences", [])
    return any(owner["uid"] == ours and owner.get("controller") for owner in owners)
