"""Ownership: what a job owns goes with it."""

from typing import Any

from kopeck.api.job_key import JobKey
from kopeck.api.names import API_VERSION, KIND


def owner_reference(key: JobKey) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "name": key.name,
        "uid": key.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
