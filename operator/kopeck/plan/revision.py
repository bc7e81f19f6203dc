"""A revision: the part of the spec that changes what training does."""

import hashlib
import json
from typing import Any

from kopeck.api.trainingjob import TrainingJobSpec

_HASH_LENGTH = 10


def revision_content(spec: TrainingJobSpec) -> dict[str, Any]:
    """What the revision consists of, defaults removed.

    Without defaults, so that a CRD upgrade that adds one restarts nothing.
    """
    content = spec.model_dump(by_alias=True, exclude_defaults=True, exclude={"run_policy"})
    content["workers"].pop("replicas")
    return content


def revision_hash(spec: TrainingJobSpec) -> str:
    """The revision's name, a DNS label."""
    text = canonical_json(revision_content(spec))
    return hashlib.sha256(text.encode()).hexdigest()[:_HASH_LENGTH]


def trainer_config(spec: TrainingJobSpec) -> dict[str, Any]:
    """What the launcher and the trainer read: the spec's own words."""
    fields = {"entrypoint", "command", "args", "parameters", "training"}
    config: dict[str, Any] = spec.model_dump(by_alias=True, exclude_none=True, include=fields)
    return config


def canonical_json(content: Any) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":"))
