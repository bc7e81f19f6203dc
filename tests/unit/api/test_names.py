"""Names stay within what Kubernetes allows, at their longest too."""

import re

import pytest

from kopeck.api.names import (
    JOB_NAME_PATTERN,
    MAX_JOB_NAME_LENGTH,
    MAX_WORKERS,
    pod_name,
    revision_config_name,
    service_name,
)
from kopeck.api.trainingjob import parse_spec
from kopeck.plan.revision import revision_hash
from tests.builders import a_job

UID = "0a1b2c3d-0000-4000-8000-000000000000"
LONGEST_JOB = "j" * MAX_JOB_NAME_LENGTH
DNS_LABEL = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")


def test_a_pod_is_named_by_job_uid_attempt_and_worker() -> None:
    assert pod_name("llama", UID, attempt=3, worker=12) == "llama-0a1b2-a3-w12"


def test_the_longest_names_are_still_dns_labels() -> None:
    revision = revision_hash(parse_spec(a_job()["spec"]))
    pod = pod_name(LONGEST_JOB, UID, attempt=99_999, worker=MAX_WORKERS)
    assert len(pod) <= 63
    for name in (
        pod,
        service_name(LONGEST_JOB, UID),
        revision_config_name(LONGEST_JOB, UID, revision),
    ):
        assert DNS_LABEL.fullmatch(name), name


def test_jobs_of_one_name_have_different_pods() -> None:
    assert pod_name("job", UID, 0, 0) != pod_name("job", "ffffffff-0000", 0, 0)


@pytest.mark.parametrize("name", ["a", "llama-7b", "a1", "j" * 44])
def test_a_job_name_is_a_dns_label(name: str) -> None:
    assert re.search(JOB_NAME_PATTERN, name)


@pytest.mark.parametrize("name", ["", "7b", "-a", "a-", "Llama", "a.b", "a_b"])
def test_a_name_that_could_not_name_a_service_is_refused(name: str) -> None:
    assert not re.search(JOB_NAME_PATTERN, name)
