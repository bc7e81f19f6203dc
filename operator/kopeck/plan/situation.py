"""All that a decision on one job is made from."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from kopeck.api.status import Effective, TrainingJobStatus
from kopeck.api.trainingjob import TrainingJobSpec
from kopeck.plan.conditions import with_condition
from kopeck.plan.job_view import JobView
from kopeck.plan.pod_facts import PodFacts


@dataclass(frozen=True)
class Situation:
    """An accepted job, the pods of its current attempt, and the time."""

    job: JobView
    status: TrainingJobStatus
    """As read, and with what this pass has decided so far."""
    current: Sequence[PodFacts]
    now: datetime

    @property
    def spec(self) -> TrainingJobSpec:
        return self.job.spec

    @property
    def effective(self) -> Effective:
        if self.status.effective is None:
            raise AssertionError("an accepted job has status.effective")
        return self.status.effective

    @property
    def samples_per_step(self) -> int | None:
        return self.spec.training.global_batch_size if self.spec.training else None

    def deciding(self, **changes: Any) -> "Situation":
        """The situation with fields of the status set."""
        return replace(self, status=self.status.model_copy(update=changes))

    def saying(
        self, kind: str, status: Literal["True", "False"], reason: str, message: str
    ) -> "Situation":
        """The situation with a condition set."""
        return self.deciding(
            conditions=with_condition(
                self.status.conditions, kind, status, reason, message, self.now
            )
        )
