"""How long a job may try."""

from pydantic import Field

from kopeck.api.spec import Spec


class RunPolicySpec(Spec):
    """How failures and slow starts end."""

    backoff_limit: int = Field(
        3, ge=0, le=1000, description="Failures that are retried. Lost pods are not failures."
    )
    backoff_seconds: int = Field(
        5, ge=0, le=3600, description="Wait before the first retry; doubles up to 5 minutes."
    )
    startup_deadline_seconds: int = Field(
        1800, ge=1, le=604_800, description="From an attempt's creation until all workers run."
    )
