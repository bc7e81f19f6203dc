"""The life of a job on a real API server; what kubelets would say is said by the test."""

from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

from tests.builders import a_job, a_report
from tests.fake_pods import disrupt, end_trainer, path_of
from tests.operator_process import OperatorProcess
from tests.waiting import eventually
from tests.workplace import Workplace

pytestmark = pytest.mark.usefixtures("operator")

PEER_LOST = 181


def complete(workplace: Workplace, name: str, attempt: int = 0, workers: int = 2) -> dict[str, Any]:
    for pod in workplace.running_pods(name, attempt, workers):
        end_trainer(workplace.kube, pod, 0, a_report())
    return workplace.reaches(name, "Complete")


def test_a_job_gets_its_objects_and_completes(workplace: Workplace) -> None:
    name = workplace.create(a_job())
    pods = workplace.running_pods(name, attempt=0, count=2)
    uid = workplace.job(name)["metadata"]["uid"]
    assert [pod["metadata"]["name"] for pod in pods] == [f"job-{uid[:5]}-a0-w{i}" for i in (0, 1)]
    service = workplace.kube.get(f"/api/v1/namespaces/{workplace.namespace}/services/job-{uid[:5]}")
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True
    for pod in pods:
        assert pod["metadata"]["ownerReferences"][0]["uid"] == uid
    status = complete(workplace, name)
    assert status["training"]["samples"] == 20 * 16
    assert status["training"]["samplesPerSecond"] == 80.0
    assert status["selector"] == f"kopeck.dev/job-uid={uid}"


def test_spend_is_what_the_pods_own_times_and_the_price_book_say(workplace: Workplace) -> None:
    name = workplace.create(a_job())
    complete(workplace, name)

    def final() -> None:
        assert not [
            each for each in workplace.ledger(name)["segments"].values() if "end" not in each
        ]
        recount = sum(map(recounted_dollars, workplace.pods(name)), Decimal(0))
        spent = Decimal(workplace.status(name)["cost"]["spent"])
        assert abs(spent - recount) <= recount / 1000, (spent, recount)
        all_in = Decimal(workplace.status(name)["cost"]["dollarsPerSample"]["allIn"])
        assert abs(all_in - recount / 320) <= recount / 320 / 100

    eventually(final)


def recounted_dollars(pod: dict[str, Any]) -> Decimal:
    """A pod's cost by other means: 3.60 dollars an hour for 32 cores and 128 GiB, half each."""
    conditions = {each["type"]: each for each in pod["status"]["conditions"]}
    start = datetime.fromisoformat(conditions["PodScheduled"]["lastTransitionTime"])
    statuses = pod["status"]["containerStatuses"] + pod["status"]["initContainerStatuses"]
    ends = [each["state"]["terminated"]["finishedAt"] for each in statuses]
    seconds = (max(map(datetime.fromisoformat, ends)) - start).total_seconds()
    cores, gibibytes = Decimal("0.6"), Decimal(1) + Decimal(64) / 1024
    share = cores / 32 / 2 + gibibytes / 128 / 2
    return Decimal("3.60") / 3600 * share * Decimal(str(seconds))


def test_a_failed_rank_gives_all_workers_a_new_attempt_and_counts_once(
    workplace: Workplace,
) -> None:
    name = workplace.create(a_job())
    first, second = workplace.running_pods(name, attempt=0, count=2)
    killed = a_report(
        exitClass="failed",
        firstFailure={"rank": 1, "exitCode": 137, "signal": "SIGKILL"},
        message="rank 1 was ended by SIGKILL",
        checkpointStep=10,
    )
    survivor = a_report(exitClass="peer-lost", checkpointStep=10)
    end_trainer(workplace.kube, first, PEER_LOST, survivor)
    end_trainer(workplace.kube, second, 137, killed)
    workplace.running_pods(name, attempt=1, count=2)
    status = workplace.status(name)
    assert status["restarts"] == {"failures": 1, "total": 1}
    assert status["lastFailure"]["signal"] == "SIGKILL"
    assert status["lastFailure"]["rank"] == 1
    assert status["lastFailure"]["worker"] == 1
    assert status["training"]["samples"] == 10 * 16
    assert workplace.pods(name, attempt=0) == []
    assert complete(workplace, name, attempt=1)["training"]["samples"] == 320


def test_a_deleted_pod_gives_a_new_attempt_and_counts_as_no_failure(workplace: Workplace) -> None:
    name = workplace.create(a_job())
    first, _ = workplace.running_pods(name, attempt=0, count=2)
    workplace.kube.delete(path_of(first))
    workplace.running_pods(name, attempt=1, count=2)
    assert workplace.status(name)["restarts"] == {"failures": 0, "total": 1}
    assert workplace.status(name)["restartReason"] == "PodLost"


def test_a_pod_deleted_by_force_counts_as_no_failure(workplace: Workplace) -> None:
    name = workplace.create(a_job())
    first, second = workplace.running_pods(name, attempt=0, count=2)
    workplace.kube.delete(path_of(first), grace_seconds=0)
    end_trainer(workplace.kube, second, PEER_LOST, a_report(exitClass="peer-lost"))
    workplace.running_pods(name, attempt=1, count=2)
    assert workplace.status(name)["restarts"] == {"failures": 0, "total": 1}


@pytest.mark.parametrize("reason", ["EvictionByEvictionAPI", "PreemptionByScheduler"])
def test_a_disrupted_pod_counts_as_no_failure(workplace: Workplace, reason: str) -> None:
    name = workplace.create(a_job())
    first, second = workplace.running_pods(name, attempt=0, count=2)
    end_trainer(workplace.kube, second, PEER_LOST, a_report(), phase="Running")
    disrupt(workplace.kube, first, reason)
    workplace.running_pods(name, attempt=1, count=2)
    assert workplace.status(name)["restarts"] == {"failures": 0, "total": 1}
    assert workplace.status(name)["restartReason"] == "Disrupted"


def test_a_wrong_configuration_is_not_tried_again_and_frees_the_other_workers(
    workplace: Workplace,
) -> None:
    name = workplace.create(a_job())
    _, second = workplace.running_pods(name, attempt=0, count=2)
    said = "spec.entrypoint: byte_llama does not import: no module named byte_llama"
    end_trainer(workplace.kube, second, 78, a_report(exitClass="configuration", message=said))
    workplace.reaches(name, "Failed")
    failed = workplace.condition(name, "Failed")
    assert (failed["status"], failed["reason"]) == ("True", "Configuration")
    assert failed["message"] == said

    def only_the_failed_one_is_left() -> None:
        assert [pod["status"]["phase"] for pod in workplace.pods(name)] == ["Failed"]

    eventually(only_the_failed_one_is_left)


def test_the_backoff_limit_ends_a_job_that_keeps_failing(workplace: Workplace) -> None:
    name = workplace.create(a_job(runPolicy={"backoffLimit": 1, "backoffSeconds": 0}))
    for attempt in (0, 1):
        first, _ = workplace.running_pods(name, attempt, count=2)
        end_trainer(workplace.kube, first, 1, a_report(message="ValueError: no"))
    status = workplace.reaches(name, "Failed")
    assert status["restarts"] == {"failures": 2, "total": 1}
    message = workplace.condition(name, "Failed")["message"]
    assert message == "ValueError: no; spec.runPolicy.backoffLimit (1) is used up"


def test_an_unschedulable_job_says_so_and_ends_at_its_deadline(workplace: Workplace) -> None:
    name = workplace.create(a_job(workers={"resources": {"requests": {"cpu": "1000"}}}))

    def says_so() -> None:
        running = workplace.condition(name, "Running")
        assert running["reason"] == "Unschedulable"
        assert "Insufficient cpu" in running["message"]

    eventually(says_so)
    workplace.end_startup(name)
    failed = workplace.condition(name, "Failed")
    assert failed["reason"] == "Unschedulable"
    assert "Insufficient cpu" in failed["message"]
    assert "startupDeadlineSeconds (1)" in failed["message"]

    def nothing_is_left() -> None:
        assert workplace.pods(name) == []

    eventually(nothing_is_left)


def test_a_quota_refuses_with_its_own_words_until_it_is_raised(workplace: Workplace) -> None:
    quotas = f"/api/v1/namespaces/{workplace.namespace}/resourcequotas"
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "few"},
        "spec": {"hard": {"pods": "1"}},
    }
    workplace.kube.create(quotas, quota)

    def quota_is_counted() -> None:
        assert workplace.kube.get(f"{quotas}/few")["status"].get("used") == {"pods": "0"}

    eventually(quota_is_counted)
    name = workplace.create(a_job())

    def refused() -> None:
        running = workplace.condition(name, "Running")
        assert running["reason"] == "Refused"
        assert "exceeded quota: few" in running["message"]

    eventually(refused)
    workplace.kube.patch(f"{quotas}/few", {"spec": {"hard": {"pods": "10"}}})
    workplace.running_pods(name, attempt=0, count=2)
    assert workplace.status(name)["restarts"] == {"failures": 0, "total": 0}


def test_scaling_restarts_with_the_new_number_of_workers(workplace: Workplace) -> None:
    name = workplace.create(a_job())
    workplace.running_pods(name, attempt=0, count=2)
    workplace.cluster.kubectl(
        "scale", f"tj/{name}", "--replicas=4", "--namespace", workplace.namespace
    )
    pods = workplace.running_pods(name, attempt=1, count=4)
    environment = {
        each["name"]: each.get("value") for each in pods[0]["spec"]["containers"][0]["env"]
    }
    assert environment["KOPECK_WORKERS"] == "4"
    assert workplace.status(name)["restartReason"] == "Resized"
    assert workplace.status(name)["restarts"] == {"failures": 0, "total": 1}


def test_a_changed_spec_is_a_new_revision_and_a_new_attempt(workplace: Workplace) -> None:
    name = workplace.create(a_job())
    workplace.running_pods(name, attempt=0, count=2)
    before = workplace.status(name)["effective"]["revision"]
    workplace.kube.patch(f"{workplace.jobs_path}/{name}", {"spec": {"parameters": {"dim": 64}}})
    workplace.running_pods(name, attempt=1, count=2)
    assert workplace.status(name)["restartReason"] == "NewRevision"
    assert workplace.status(name)["effective"]["revision"] != before


def test_a_changed_run_policy_restarts_nothing(workplace: Workplace) -> None:
    name = workplace.create(a_job())
    workplace.running_pods(name, attempt=0, count=2)
    workplace.kube.patch(
        f"{workplace.jobs_path}/{name}", {"spec": {"runPolicy": {"backoffLimit": 9}}}
    )

    def observed() -> None:
        assert workplace.status(name)["observedGeneration"] == 2

    eventually(observed)
    assert workplace.status(name)["attempt"] == 0


def test_a_job_on_a_node_without_a_price_has_no_dollars(workplace: Workplace) -> None:
    template = {
        "spec": {
            "nodeSelector": {"priced": "no"},
            "tolerations": [{"key": "priced", "operator": "Exists"}],
        }
    }
    name = workplace.create(a_job(workers={"template": template}))
    workplace.running_pods(name, attempt=0, count=2)

    def price_is_unknown() -> None:
        known = workplace.condition(name, "PriceKnown")
        assert (known["status"], known["reason"]) == ("False", "NoPrice")
        missing = "it has no label node.kubernetes.io/instance-type"
        assert f"no price for node unpriced-0: {missing}" in known["message"]

    eventually(price_is_unknown)
    cost = workplace.status(name)["cost"]
    assert not {"spent", "hourlyRate", "dollarsPerSample"} & cost.keys()
    for pod in workplace.pods(name):
        assert "kopeck.dev/hourly-rate-dollars" not in pod["metadata"].get("annotations", {})


def test_no_dollar_metric_is_exported_without_a_price(
    workplace: Workplace, operator: OperatorProcess
) -> None:
    template = {
        "spec": {
            "nodeSelector": {"priced": "no"},
            "tolerations": [{"key": "priced", "operator": "Exists"}],
        }
    }
    name = workplace.create(a_job("unpriced", workers={"template": template}))
    complete(workplace, name)
    ours = [
        line
        for line in operator.metrics().splitlines()
        if f'namespace="{workplace.namespace}"' in line
    ]
    assert any(line.startswith("kopeck_job_samples_kept") for line in ours)
    assert not [line for line in ours if "dollars" in line]


def test_status_and_metrics_say_the_same(workplace: Workplace, operator: OperatorProcess) -> None:
    name = workplace.create(a_job("told"))
    complete(workplace, name)

    def agree() -> None:
        cost = workplace.status(name)["cost"]
        labels = f'namespace="{workplace.namespace}",training_job="told"'
        metrics = dict(line.rsplit(" ", 1) for line in operator.metrics().splitlines())
        assert float(metrics[f"kopeck_job_cost_dollars_total{{{labels}}}"]) == float(cost["spent"])
        all_in = metrics[f'kopeck_dollars_per_sample{{basis="all_in",{labels}}}']
        assert float(all_in) == float(cost["dollarsPerSample"]["allIn"])

    eventually(agree)


def test_each_pod_learns_its_hourly_rate(workplace: Workplace) -> None:
    name = workplace.create(a_job())
    workplace.running_pods(name, attempt=0, count=2)
    share = (Decimal("0.6") / 32 + (Decimal(1) + Decimal(64) / 1024) / 128) / 2

    def told() -> None:
        for pod in workplace.pods(name):
            rate = pod["metadata"]["annotations"]["kopeck.dev/hourly-rate-dollars"]
            assert abs(Decimal(rate) - share * Decimal("3.60")) < Decimal("1e-8")

    def annotated() -> None:
        for pod in workplace.pods(name):
            assert "kopeck.dev/hourly-rate-dollars" in pod["metadata"]["annotations"]

    eventually(annotated)
    told()


def test_deleting_a_job_leaves_no_object_of_it_and_its_ledger_closed(
    workplace: Workplace,
) -> None:
    name = workplace.create(a_job(workers={"replicas": 4}))
    workplace.running_pods(name, attempt=0, count=4)
    uid = workplace.job(name)["metadata"]["uid"]
    workplace.kube.delete(f"{workplace.jobs_path}/{name}")

    def nothing_is_left() -> None:
        for kind in ("pods", "services", "configmaps"):
            path = f"/api/v1/namespaces/{workplace.namespace}/{kind}"
            assert workplace.kube.list(path, "kopeck.dev/job") == []

    def all_is_charged() -> None:
        segments = workplace.ledger_of(uid)["segments"].values()
        assert ["end" in each for each in segments] == [True] * 4, segments

    eventually(nothing_is_left)
    eventually(all_is_charged)


def test_a_job_of_the_same_name_starts_from_nothing(workplace: Workplace) -> None:
    name = workplace.create(a_job())
    workplace.running_pods(name, attempt=0, count=2)
    workplace.kube.delete(f"{workplace.jobs_path}/{name}")
    eventually(lambda: _is_gone(workplace, name))
    workplace.create(a_job())
    pods = workplace.running_pods(name, attempt=0, count=2)
    uid = workplace.job(name)["metadata"]["uid"]
    assert {pod["metadata"]["labels"]["kopeck.dev/job-uid"] for pod in pods} == {uid}


def _is_gone(workplace: Workplace, name: str) -> None:
    assert workplace.kube.get(f"{workplace.jobs_path}/{name}") is None
    assert workplace.pods(name) == []
