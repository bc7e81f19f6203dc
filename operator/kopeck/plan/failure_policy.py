"""Whether a failed attempt is tried again, and when."""

from datetime import datetime, timedelta

from kopeck.api.run_policy import RunPolicySpec
from kopeck.api.status import Failure, Restarts
from kopeck.plan.attempt import CONFIGURATION_EXIT_CODE

_LONGEST_BACKOFF_SECONDS = 300


def is_final(failure: Failure, restarts: Restarts, policy: RunPolicySpec) -> bool:
    """Whether this failure, not yet counted in `restarts`, ends the job."""
    return failure.exit_code == CONFIGURATION_EXIT_CODE or restarts.failures >= policy.backoff_limit


def retry_at(failures: int, policy: RunPolicySpec, now: datetime) -> datetime:
    """When the attempt after the given count of failures may begin; doubles up to 5 minutes."""
    doubled = policy.backoff_seconds * 2 ** min(failures - 1, 16)
    return now + timedelta(seconds=min(doubled, _LONGEST_BACKOFF_SECONDS))
