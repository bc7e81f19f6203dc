"""What the pods of a job share: the Service of their names, the ConfigMap of a revision."""

from typing import Any

from kopeck.api import names
from kopeck.api.job_key import JobKey
from kopeck.api.trainingjob import TrainingJobSpec
from kopeck.plan.owner import owner_reference
from kopeck.plan.revision import canonical_json, revision_content, trainer_config


def headless_service(key: JobKey) -> dict[str, Any]:
    """Names every pod, ready or not: ranks must meet before anything is ready."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(key, names.service_name(key.name, key.uid)),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {names.LABEL_JOB_UID: key.uid},
        },
    }


def revision_config(key: JobKey, spec: TrainingJobSpec, revision: str) -> dict[str, Any]:
    """The immutable ConfigMap that is the revision and configures its trainers."""
    data = {
        "config.json": canonical_json(trainer_config(spec)),
        "revision.json": canonical_json(revision_content(spec)),
    }
    name = names.revision_config_name(key.name, key.uid, revision)
    return owned_config_map(key, name, data)


def owned_config_map(key: JobKey, name: str, data: dict[str, str]) -> dict[str, Any]:
    """An immutable ConfigMap that goes with its job."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _metadata(key, name),
        "immutable": True,
        "data": data,
    }


def _metadata(key: JobKey, name: str) -> dict[str, Any]:
    return {
        "name": name,
        "namespace": key.namespace,
        "labels": {names.LABEL_JOB: key.name, names.LABEL_JOB_UID: key.uid},
        "ownerReferences": [owner_reference(key)],
    }
