"""What is known of a TrainingJob in one pass."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from kopeck.api.errors import SpecError
from kopeck.api.job_key import JobKey
from kopeck.api.names import ANNOTATION_CHECKPOINT_REQUEST
from kopeck.api.status import TrainingJobStatus
from kopeck.api.timestamps import parse_timestamp
from kopeck.api.trainingjob import TrainingJobSpec, parse_spec


@dataclass(frozen=True)
class JobView:
    """One TrainingJob as it was read last."""

    manifest: Mapping[str, Any]

    @property
    def key(self) -> JobKey:
        metadata = self.manifest["metadata"]
        return JobKey(metadata["namespace"], metadata["name"], metadata["uid"])

    @property
    def generation(self) -> int:
        return int(self.manifest["metadata"].get("generation", 1))

    @property
    def resource_version(self) -> str:
        return str(self.manifest["metadata"]["resourceVersion"])

    @property
    def is_deleting(self) -> bool:
        return "deletionTimestamp" in self.manifest["metadata"]

    @property
    def checkpoint_request(self) -> str | None:
        """The annotation that asks for a checkpoint, as it was written."""
        annotations = self.manifest["metadata"].get("annotations") or {}
        return annotations.get(ANNOTATION_CHECKPOINT_REQUEST) or None

    @property
    def created_at(self) -> datetime:
        return parse_timestamp(self.manifest["metadata"]["creationTimestamp"])

    @cached_property
    def spec(self) -> TrainingJobSpec:
        """Raises SpecError where the API server let through what this version cannot read."""
        return parse_spec(self.manifest["spec"])

    @property
    def is_readable(self) -> bool:
        """Whether this version can read the spec."""
        try:
            return bool(self.spec)
        except SpecError:
            return False

    @cached_property
    def status(self) -> TrainingJobStatus:
        return TrainingJobStatus.model_validate(self.manifest.get("status") or {})

    @property
    def is_finished(self) -> bool:
        return self.status.phase in ("Complete", "Failed")
