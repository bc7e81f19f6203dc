"""Test objects: a builder fills in what the test's sentence leaves out."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from kopeck.cost.charging import HeldPod
from kopeck.cost.ledger import Ledger, Segment
from kopeck.plan.job_view import JobView
from kopeck.plan.pod_facts import PodFacts, pod_facts
from kopeck.plan.template import merged
from kopeck.pricing.price import NodeKey

T0 = datetime(2026, 1, 1, tzinfo=UTC)
JOB_UID = "abcdef"
NODE_KEY = NodeKey("p5.48xlarge", "us-east-1", "us-east-1a", "spot")


def after(**duration: float) -> datetime:
    """A moment so long after T0."""
    return T0 + timedelta(**duration)


def a_job(name: str = "job", **spec: Any) -> dict[str, Any]:
    """A TrainingJob's manifest; keywords are merged over its spec."""
    basis = {
        "image": "localhost/kopeck:dev",
        "entrypoint": "byte_llama:build",
        "workers": {
            "replicas": 2,
            "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}},
        },
        "training": {"steps": 20, "globalBatchSize": 16, "microBatchSize": 4},
        "runPolicy": {"backoffSeconds": 0},
    }
    return {
        "apiVersion": "kopeck.dev/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {"name": name},
        "spec": {key: each for key, each in merged(basis, spec).items() if each is not None},
    }


def a_report(**fields: Any) -> dict[str, Any]:
    """A launcher's termination message."""
    return {
        "v": 1,
        "exitClass": "completed",
        "step": 20,
        "samples": 320,
        "loss": 2.5,
        "checkpointStep": 20,
        "samplesPerSecond": 40.0,
        "compileMode": "default",
        "compileSeconds": 12.5,
        "graphBreaks": 0,
        "recompiles": 0,
    } | fields


def a_pod(
    worker: int = 0, attempt: int = 0, *, status: Mapping[str, Any] | None = None, **metadata: Any
) -> dict[str, Any]:
    """A worker pod's manifest as the API server shows it, scheduled and running."""
    return {
        "metadata": {
            "name": f"job-abcde-a{attempt}-w{worker}",
            "namespace": "default",
            "uid": f"pod-{attempt}-{worker}",
            "resourceVersion": "1",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {
                "kopeck.dev/job": "job",
                "kopeck.dev/job-uid": "abcdef",
                "kopeck.dev/attempt": str(attempt),
                "kopeck.dev/worker": str(worker),
            },
            "ownerReferences": [{"uid": "abcdef", "controller": True}],
        }
        | metadata,
        "spec": {"nodeName": "node-1", "containers": [{"name": "trainer"}]},
        "status": merged(
            {
                "phase": "Running",
                "conditions": [
                    {
                        "type": "PodScheduled",
                        "status": "True",
                        "lastTransitionTime": "2026-01-01T00:00:00Z",
                    }
                ],
                "containerStatuses": [
                    {
                        "name": "trainer",
                        "state": {"running": {"startedAt": "2026-01-01T00:00:05Z"}},
                    }
                ],
            },
            status or {},
        ),
    }


def ended(exit_code: int = 0, **facts: Any) -> dict[str, Any]:
    """The status of a pod whose trainer ended; keywords are of its container's state."""
    if isinstance(facts.get("message"), Mapping):
        facts["message"] = json.dumps(facts["message"])
    terminated = {
        "exitCode": exit_code,
        "startedAt": "2026-01-01T00:00:05Z",
        "finishedAt": "2026-01-01T01:00:00Z",
        "reason": "Completed" if exit_code == 0 else "Error",
    }
    return {
        "phase": "Failed" if exit_code else "Succeeded",
        "containerStatuses": [{"name": "trainer", "state": {"terminated": terminated | facts}}],
    }


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    """The status of a pod whose trainer waits to start."""
    state = {"waiting": {"reason": reason, "message": message}}
    return {"phase": "Pending", "containerStatuses": [{"name": "trainer", "state": state}]}


def facts_of(worker: int = 0, attempt: int = 0, **facts: Any) -> PodFacts:
    """What is remembered of a worker pod; `status` is the manifest's, the rest are facts."""
    status = facts.pop("status", None)
    return replace(pod_facts(a_pod(worker, attempt, status=status)), **facts)


def a_job_view(
    status: Mapping[str, Any] | None = None,
    *,
    generation: int = 1,
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> JobView:
    """A TrainingJob as it was read, before anything was written unless `status` says so."""
    metadata = {
        "name": "job",
        "namespace": "default",
        "uid": JOB_UID,
        "generation": generation,
        "resourceVersion": "1",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "annotations": annotations or {},
    }
    return JobView(a_job(**spec) | {"metadata": metadata, "status": status or {}})


def a_segment(pod_uid: str = "pod", **facts: Any) -> Segment:
    """A whole node held since T0, at a dollar an hour."""
    whole_node = Segment(
        pod_uid=pod_uid,
        pod=f"{pod_uid}-name",
        attempt=0,
        node="node-1",
        start=T0,
        node_share=Decimal(1),
        dollars_per_hour=Decimal(1),
        price_book="book",
        price_key=NODE_KEY,
    )
    return whole_node.model_copy(update=facts)


def a_ledger(*segments: Segment) -> Ledger:
    return Ledger().with_segments(segments)


def a_held_pod(uid: str = "pod", **facts: Any) -> HeldPod:
    """A pod that a whole node holds since T0."""
    held = HeldPod(
        uid=uid,
        name=f"{uid}-name",
        attempt=0,
        node="node-1",
        scheduled_at=T0,
        ended_at=None,
        is_gone=False,
        node_share=Decimal(1),
        price_key=NODE_KEY,
    )
    return replace(held, **facts)
