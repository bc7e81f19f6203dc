"""Whether a failed attempt is tried again, and when."""

from datetime import timedelta

import pytest

from kopeck.api.run_policy import RunPolicySpec
from kopeck.api.status import Failure, Restarts
from kopeck.plan.failure_policy import is_final, retry_at
from tests.builders import T0


def a_failure(exit_code: int | None = 1) -> Failure:
    return Failure(attempt=0, worker=0, exit_code=exit_code, reason="ExitCode", message="no")


@pytest.mark.parametrize("failures", [0, 1, 2])
def test_as_many_failures_are_retried_as_the_limit_says(failures: int) -> None:
    assert not is_final(a_failure(), Restarts(failures=failures), RunPolicySpec(backoff_limit=3))


def test_one_failure_more_than_the_limit_is_final() -> None:
    assert is_final(a_failure(), Restarts(failures=3), RunPolicySpec(backoff_limit=3))


def test_a_limit_of_zero_retries_nothing() -> None:
    assert is_final(a_failure(), Restarts(), RunPolicySpec(backoff_limit=0))


def test_a_wrong_configuration_is_final_at_once() -> None:
    assert is_final(a_failure(78), Restarts(), RunPolicySpec(backoff_limit=9))


@pytest.mark.parametrize("exit_code", [1, 137, 139, 143, 180, 181, 182, None])
def test_nothing_but_a_wrong_configuration_is_final_by_its_code(exit_code: int | None) -> None:
    assert not is_final(a_failure(exit_code), Restarts(), RunPolicySpec())


def test_restarts_that_are_no_failures_use_up_nothing() -> None:
    assert not is_final(a_failure(), Restarts(failures=0, total=50), RunPolicySpec(backoff_limit=1))


@pytest.mark.parametrize(
    ("failures", "seconds"), [(1, 5), (2, 10), (3, 20), (4, 40), (7, 300), (8, 300), (1000, 300)]
)
def test_the_wait_doubles_up_to_five_minutes(failures: int, seconds: int) -> None:
    policy = RunPolicySpec(backoff_seconds=5)
    assert retry_at(failures, policy, T0) == T0 + timedelta(seconds=seconds)


def test_without_backoff_there_is_no_wait() -> None:
    assert retry_at(9, RunPolicySpec(backoff_seconds=0), T0) == T0
