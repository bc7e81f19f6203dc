"""The life of a job, pass after pass."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopeck.api.errors import SpecError
from kopeck.api.status import TrainingJobStatus
from kopeck.plan.candidate_nodes import GpuNode, gpu_node
from kopeck.plan.job_view import JobView
from kopeck.plan.nccl_decision import Hidden, Surroundings, agreement_on, awaits_decision
from kopeck.plan.plan import plan
from kopeck.plan.pod_facts import PodFacts
from kopeck.plan.step import Step
from kopeck.topology.layouts import nd_h100_v5
from kopeck.topology.writer import to_xml
from tests.builders import JOB_UID, T0, a_job_view, a_report, after, ended, facts_of, waiting
from tests.platforms import PLATFORMS, node_manifest

LONG_AGO = T0 - timedelta(hours=1)


@dataclass
class Life:
    """One job, and what a cluster would do of what is planned for it."""

    job: JobView = field(default_factory=a_job_view)
    pods: list[PodFacts] = field(default_factory=list)
    now: datetime = T0
    nodes: list[GpuNode] = field(default_factory=list)
    config_maps: dict[tuple[str, str], dict[str, str] | None] = field(default_factory=dict)
    refusal: str | None = None
    """What the API server says when nodes are to be listed."""

    @property
    def status(self) -> TrainingJobStatus:
        return self.job.status

    def step(self) -> Step:
        """The step that is planned now; nothing is done yet."""
        return plan(self.job, self.pods, "exporter:1", self.now, self.surroundings())

    def surroundings(self) -> Surroundings | Hidden | None:
        if not awaits_decision(self.job, self.pods):
            return None
        if self.refusal:
            return Hidden(self.refusal)
        return Surroundings(agreement_on(self.job, self.nodes), self.config_maps)

    def write(self, status: TrainingJobStatus) -> None:
        written = status.model_dump(by_alias=True, exclude_none=True)
        self.job = JobView({**self.job.manifest, "status": written})

    def go_on(self) -> Step:
        """Plan, write, do: one pass."""
        step = self.step()
        self.pods = [pod for pod in self.pods if pod.attempt not in step.old_attempts]
        ended_uids = {pod.uid for pod in step.ended_pods}
        self.pods = [pod for pod in self.pods if pod.uid not in ended_uids]
        for manifest in step.pods:
            labels = manifest["metadata"]["labels"]
            worker, attempt = labels["kopeck.dev/worker"], labels["kopeck.dev/attempt"]
            pod = facts_of(int(worker), int(attempt), status=waiting("ContainerCreating"))
            self.pods.append(replace(pod, name=manifest["metadata"]["name"]))
        self.write(step.status)
        return step

    def all_run(self) -> None:
        """Let the kubelets start everything."""
        self.pods = [facts_of(pod.worker, pod.attempt, name=pod.name) for pod in self.pods]

    def see(self, worker: int, **facts: Any) -> None:
        """Let a pod of the current attempt change."""
        at = next(
            index
            for index, pod in enumerate(self.pods)
            if (pod.worker, pod.attempt) == (worker, self.status.attempt)
        )
        self.pods[at] = facts_of(worker, self.status.attempt, **facts)

    def end(self, worker: int, exit_code: int, **report: Any) -> None:
        """Let a trainer end, long enough ago for all evidence to be in."""
        status = ended(exit_code, message=a_report(**report))
        self.see(worker, status=status, trainer_end_seen_at=LONG_AGO)

    def change(self, **spec: Any) -> None:
        """Let the user apply another spec."""
        changed = a_job_view(generation=self.job.generation + 1, **spec)
        self.job = JobView({**changed.manifest, "status": self.job.manifest["status"]})

    def condition(self, kind: str) -> tuple[str, str, str]:
        found = next(each for each in self.status.conditions if each.type == kind)
        return found.status, found.reason, found.message


def a_running_job(**spec: Any) -> Life:
    life = Life(a_job_view(**spec))
    life.go_on()
    life.go_on()
    life.all_run()
    life.go_on()
    assert life.status.phase == "Running"
    return life


def names(manifests: Sequence[dict[str, Any]]) -> list[str]:
    return [each["metadata"]["name"] for each in manifests]


def creates_nothing(step: Step) -> bool:
    return not (step.pods or step.service or step.config)


def test_a_job_is_accepted_in_writing_before_anything_is_made() -> None:
    step = Life().step()
    assert creates_nothing(step)
    assert step.status.phase == "Pending"
    assert step.status.selector == f"kopeck.dev/job-uid={JOB_UID}"
    assert step.status.effective is not None
    assert step.status.effective.workers == 2


def test_the_pods_follow_with_their_service_and_configuration() -> None:
    life = Life()
    life.go_on()
    step = life.step()
    assert names(step.pods) == ["job-abcde-a0-w0", "job-abcde-a0-w1"]
    assert step.service is not None
    assert step.config is not None
    assert step.status.effective == life.status.effective


EIGHT_GPUS = {
    "workers": {"gpusPerWorker": 8},
    "training": {"steps": 20, "globalBatchSize": 64, "microBatchSize": 4},
}


def nodes_on(*names: str) -> list[GpuNode]:
    platforms = {each.name: each for each in PLATFORMS}
    found = [gpu_node(node_manifest(platforms[name], name)) for name in names]
    return [node for node in found if node]


def a_gpu_job(nodes: list[GpuNode], **spec: Any) -> Life:
    life = Life(a_job_view(**EIGHT_GPUS | spec), nodes=nodes)
    life.go_on()
    return life


def limits_of(step: Step) -> list[dict[str, str]]:
    return [pod["spec"]["containers"][0]["resources"]["limits"] for pod in step.pods]


def test_what_gpus_need_is_decided_in_writing_before_any_pod_is_made() -> None:
    life = a_gpu_job(nodes_on("azure-nd-h100-v5"))
    step = life.step()
    assert creates_nothing(step)
    assert step.nccl_config is not None
    life.go_on()
    assert life.status.effective is not None
    assert life.status.effective.nccl is not None
    assert life.status.effective.nccl.config_map == step.nccl_config["metadata"]["name"]
    assert life.condition("PlatformKnown")[:2] == ("True", "Known")
    assert limits_of(life.step()) == [{"nvidia.com/gpu": "8", "rdma/shared_ib": "1"}] * 2


def test_no_later_node_changes_an_attempt_and_the_next_one_is_decided_anew() -> None:
    life = a_gpu_job(nodes_on("aws-p5"))
    life.go_on()
    life.nodes = nodes_on("hgx")
    before = limits_of(life.go_on())
    assert before[0]["vpc.amazonaws.com/efa"] == "32"
    life.go_on()
    life.all_run()
    life.go_on()
    life.end(0, 1)
    life.go_on()
    assert life.status.effective is not None
    assert life.status.effective.nccl is None
    life.go_on()
    life.go_on()
    assert limits_of(life.step()) == [{"nvidia.com/gpu": "8", "rdma/hca": "8"}] * 2


def test_where_nodes_differ_the_job_runs_without_and_says_so() -> None:
    life = a_gpu_job(nodes_on("aws-p5", "hgx"))
    life.go_on()
    assert life.condition("PlatformKnown")[:2] == ("False", "NodesDiffer")
    assert limits_of(life.step()) == [{"nvidia.com/gpu": "8"}] * 2


def test_nodes_that_may_not_be_listed_hold_the_job_until_its_deadline() -> None:
    life = a_gpu_job([], runPolicy={"startupDeadlineSeconds": 60})
    life.refusal = 'nodes is forbidden: cannot list resource "nodes"'
    step = life.go_on()
    assert creates_nothing(step)
    assert step.due_at == after(seconds=10)
    assert life.condition("Running")[1:] == ("Refused", life.refusal)
    life.now = after(seconds=60)
    life.go_on()
    assert life.condition("Failed")[1] == "Refused"


def test_a_topology_file_that_is_not_there_holds_the_job_until_it_is() -> None:
    own = {"topology": "configMap", "topologyConfigMap": {"name": "mine"}}
    life = a_gpu_job([], nccl=own)
    life.config_maps = {("default", "mine"): None}
    step = life.go_on()
    assert creates_nothing(step)
    assert step.due_at == after(seconds=10)
    _, reason, message = life.condition("Running")
    assert reason == "InvalidTopology"
    assert message.startswith("spec.nccl.topologyConfigMap: there is no ConfigMap mine")
    life.config_maps = {("default", "mine"): {"topology.xml": to_xml(nd_h100_v5())}}
    life.go_on()
    assert len(life.step().pods) == 2


def test_a_job_that_asks_for_no_gpus_any_more_says_nothing_of_their_nodes() -> None:
    life = a_gpu_job(nodes_on("aws-p5"))
    life.go_on()
    life.go_on()
    life.change(workers={"gpusPerWorker": 0})
    life.go_on()
    assert [each.type for each in life.status.conditions] == ["Running"]


def test_a_template_that_takes_what_is_ours_is_refused_before_anything_is_decided() -> None:
    own = [{"name": "trainer", "env": [{"name": "KOPECK_JOB", "value": "mine"}]}]
    workers = {"gpusPerWorker": 8, "template": {"spec": {"containers": own}}}
    life = a_gpu_job(nodes_on("aws-p5"), workers=workers)
    with pytest.raises(SpecError, match="sets KOPECK_JOB, which is kopeck's"):
        life.step()


def test_only_missing_pods_are_made() -> None:
    life = Life()
    life.go_on()
    life.pods = [facts_of(1)]
    assert names(life.step().pods) == ["job-abcde-a0-w0"]


def test_nothing_is_made_again_once_all_pods_have_existed() -> None:
    life = a_running_job()
    life.pods = life.pods[:1]
    assert creates_nothing(life.step())


def test_a_job_starts_and_then_runs() -> None:
    life = Life()
    life.go_on()
    life.go_on()
    life.go_on()
    assert (life.status.phase, life.condition("Running")[1:]) == (
        "Starting",
        ("Starting", "0 of 2 workers run"),
    )
    life.all_run()
    life.now = after(minutes=3)
    life.go_on()
    assert life.status.phase == "Running"
    assert life.status.start_time == "2026-01-01T00:03:00Z"
    assert life.condition("Running") == ("True", "Running", "all 2 workers run")


def test_a_job_that_runs_on_changes_nothing() -> None:
    life = a_running_job()
    life.now = after(hours=5)
    step = life.step()
    assert step == Step(life.status)


def test_a_job_completes_with_its_workers() -> None:
    life = a_running_job()
    life.end(0, 0)
    life.go_on()
    assert life.status.phase == "Running"
    life.end(1, 0)
    step = life.go_on()
    assert step.cannot_be_undone
    assert life.status.phase == "Complete"
    assert life.condition("Complete")[1:] == (
        "Complete",
        "training is complete after 320 samples",
    )
    assert life.condition("Running")[0] == "False"
    assert life.status.training is not None
    assert life.status.training.samples == 320


def test_a_job_whose_compiled_results_differed_says_so_for_good() -> None:
    life = a_running_job()
    life.end(0, 0, numericsMismatch="default differs from eager: loss 2 compiled, 1 eager")
    life.end(1, 0, numericsMismatch="default differs from eager: loss 2 compiled, 1 eager")
    life.go_on()
    assert life.status.phase == "Complete"
    status, reason, message = life.condition("Degraded")
    assert (status, reason) == ("True", "NumericsMismatch")
    assert message.startswith("default differs from eager: loss 2 compiled, 1 eager; it is not")


def test_a_complete_job_keeps_its_pods_for_their_logs() -> None:
    life = a_running_job()
    life.end(0, 0)
    life.end(1, 0)
    life.go_on()
    assert life.step() == Step(life.status)


def test_a_failure_is_counted_first_then_the_pods_go_then_new_ones_come() -> None:
    life = a_running_job(runPolicy={"backoffSeconds": 0})
    life.end(1, 139, checkpointStep=10)
    counted = life.go_on()
    assert not counted.old_attempts
    assert creates_nothing(counted)
    assert (life.status.phase, life.status.attempt) == ("Restarting", 1)
    assert life.status.restarts.model_dump() == {"failures": 1, "total": 1}
    assert life.status.last_failure is not None
    assert life.status.last_failure.exit_code == 139
    assert life.status.training is not None
    assert life.status.training.samples == 160

    deleted = life.step()
    assert deleted.old_attempts == [0]
    assert deleted.old_attempts_grace_seconds == 5
    assert creates_nothing(deleted)

    life.go_on()
    assert names(life.go_on().pods) == ["job-abcde-a1-w0", "job-abcde-a1-w1"]


def test_new_pods_wait_until_the_last_old_one_is_gone() -> None:
    life = a_running_job(runPolicy={"backoffSeconds": 0})
    life.end(1, 1)
    life.go_on()
    life.pods = [replace(pod, is_deleting=True) for pod in life.pods]
    step = life.step()
    assert not step.old_attempts
    assert creates_nothing(step)


def test_new_pods_wait_for_the_backoff_and_the_deadline_counts_from_its_end() -> None:
    life = a_running_job(runPolicy={"backoffSeconds": 40, "startupDeadlineSeconds": 60})
    life.end(0, 1)
    life.go_on()
    life.go_on()
    step = life.go_on()
    assert creates_nothing(step)
    assert step.due_at == after(seconds=40)
    life.now = after(seconds=40)
    step = life.step()
    assert len(step.pods) == 2
    assert step.due_at == after(seconds=100)


def test_a_failure_beyond_the_limit_is_final_and_frees_the_survivors() -> None:
    life = a_running_job(runPolicy={"backoffLimit": 0})
    life.end(1, 1, message="ValueError: no")
    life.go_on()
    assert life.status.phase == "Failed"
    assert life.status.attempt == 0
    assert life.condition("Failed")[1:] == (
        "ExitCode",
        "ValueError: no; spec.runPolicy.backoffLimit (0) is used up",
    )
    step = life.step()
    assert [pod.worker for pod in step.ended_pods] == [0]
    assert step.cannot_be_undone
    life.go_on()
    life.go_on()
    assert life.status.replicas == 1
    assert life.step() == Step(life.status)


def test_a_wrong_configuration_is_final_whatever_the_limit() -> None:
    life = a_running_job()
    life.end(0, 78, message="spec.entrypoint: no such module")
    life.go_on()
    assert life.condition("Failed")[1:] == ("Configuration", "spec.entrypoint: no such module")


def test_a_disruption_is_a_new_attempt_and_no_failure() -> None:
    life = a_running_job()
    life.see(1, disruption="PreemptionByScheduler")
    life.go_on()
    assert life.status.restarts.model_dump() == {"failures": 0, "total": 1}
    assert life.status.restart_reason == "Disrupted"
    assert life.status.last_failure is None
    step = life.step()
    assert step.old_attempts == [0]
    assert step.old_attempts_grace_seconds is None


def test_a_lost_pod_is_a_new_attempt_without_a_wait() -> None:
    life = a_running_job(runPolicy={"backoffSeconds": 300})
    life.pods = life.pods[1:]
    life.go_on()
    assert life.status.restart_reason == "PodLost"
    assert life.status.retry_at is None
    life.go_on()
    assert len(life.step().pods) == 2


def test_an_end_without_its_cause_waits_for_evidence_in_status_quo() -> None:
    life = a_running_job()
    life.see(0, status=ended(181), trainer_end_seen_at=T0)
    step = life.step()
    assert step == Step(life.status.model_copy(update={"ready_replicas": 1}), due_at=step.due_at)
    assert step.due_at == after(seconds=5)


def test_a_job_that_does_not_start_in_time_fails_with_what_it_waited_for() -> None:
    life = Life(a_job_view(runPolicy={"startupDeadlineSeconds": 60}))
    life.go_on()
    life.go_on()
    for worker in (0, 1):
        life.see(worker, status=waiting("ErrImagePull", "manifest unknown"))
    step = life.go_on()
    assert step.due_at == after(seconds=60)
    life.now = after(seconds=60)
    life.go_on()
    status, reason, message = life.condition("Failed")
    assert (status, reason) == ("True", "ImageNotPulled")
    assert "worker 0: ErrImagePull: manifest unknown" in message
    assert message.endswith("not started within spec.runPolicy.startupDeadlineSeconds (60)")
    assert [pod.worker for pod in life.step().ended_pods] == [0, 1]


def test_pods_that_were_refused_until_the_deadline_fail_with_the_refusals_words() -> None:
    life = Life(a_job_view(runPolicy={"startupDeadlineSeconds": 60}))
    life.go_on()
    conditions = [
        each.model_copy(update={"reason": "Refused", "message": "exceeded quota: few"})
        for each in life.status.conditions
    ]
    life.write(life.status.model_copy(update={"conditions": conditions}))
    life.now = after(seconds=60)
    life.go_on()
    assert life.condition("Failed")[1] == "Refused"
    assert "exceeded quota: few" in life.condition("Failed")[2]


def test_a_job_that_once_ran_is_not_late() -> None:
    life = a_running_job(runPolicy={"startupDeadlineSeconds": 60})
    life.see(0, status=waiting("ContainerCreating"))
    life.now = after(hours=1)
    assert life.step().status.phase == "Running"


def test_another_number_of_workers_is_a_new_attempt_of_the_same_revision() -> None:
    life = a_running_job()
    before = life.status.effective
    life.change(workers={"replicas": 4})
    step = life.go_on()
    assert step.cannot_be_undone
    assert life.status.restart_reason == "Resized"
    assert life.status.effective is not None
    assert before is not None
    assert (life.status.effective.workers, life.status.effective.revision) == (4, before.revision)
    assert life.step().old_attempts_grace_seconds is None
    life.go_on()
    assert len(life.step().pods) == 4


def test_another_spec_is_a_new_revision() -> None:
    life = a_running_job()
    life.change(parameters={"dim": 64})
    life.go_on()
    assert life.status.restart_reason == "NewRevision"
    assert life.status.observed_generation == 2


def test_another_policy_restarts_nothing() -> None:
    life = a_running_job()
    life.change(runPolicy={"backoffLimit": 9})
    life.go_on()
    assert (life.status.attempt, life.status.observed_generation) == (0, 2)


def test_a_finished_job_is_not_started_again_by_another_spec() -> None:
    life = a_running_job()
    life.end(0, 0)
    life.end(1, 0)
    life.go_on()
    life.change(parameters={"dim": 64})
    assert life.step() == Step(life.status)


def test_a_spec_that_cannot_be_run_is_refused_and_not_half_run() -> None:
    containers = [{"name": "trainer", "env": [{"name": "KOPECK_JOB", "value": "mine"}]}]
    life = Life(a_job_view(workers={"template": {"spec": {"containers": containers}}}))
    life.go_on()
    with pytest.raises(SpecError, match="sets KOPECK_JOB, which is kopeck's"):
        life.step()


messages = st.sampled_from(
    [None, "{}", "not JSON", '{"firstFailure": 7}', '{"samples": 99, "checkpointStep": 5}']
)


@st.composite
def trainer_statuses(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(["ended", "waiting", "running", "nothing", "half"]))
    if kind == "ended":
        exit_code = draw(st.sampled_from([0, 1, 78, 137, 143, 180, 181, 182]))
        status = ended(exit_code, message=draw(messages))
        return status | {"phase": draw(st.sampled_from([status["phase"], "Running"]))}
    if kind == "waiting":
        return waiting(draw(st.sampled_from(["ErrImagePull", "ContainerCreating", "Odd"])))
    if kind == "nothing":
        phase = draw(st.sampled_from(["Pending", "Failed", "Succeeded", "Unknown"]))
        return {"phase": phase, "containerStatuses": []}
    return {}


@st.composite
def seen_pods(draw: st.DrawFn) -> list[PodFacts]:
    """Whatever a cluster may show: of three attempts, some pods missing, some in any state."""
    places = st.tuples(st.integers(0, 2), st.integers(0, 2))
    return [
        facts_of(
            worker,
            attempt,
            status=draw(trainer_statuses()),
            is_deleting=draw(st.booleans()),
            disruption=draw(st.none() | st.just("EvictionByEvictionAPI")),
            trainer_end_seen_at=draw(st.none() | st.just(LONG_AGO) | st.just(T0)),
        )
        for worker, attempt in draw(st.lists(places, unique=True, max_size=7))
    ]


sights = st.lists(st.tuples(seen_pods(), st.sampled_from([0, 4, 40, 4000])), max_size=8)


@given(
    sights,
    st.sampled_from([0, 1, 3]),
    st.sampled_from([{}, EIGHT_GPUS]),
    st.sampled_from([[], ["aws-p5"], ["azure-nd-h100-v5"], ["aws-p5", "hgx"]]),
)
def test_whatever_the_cluster_shows_no_pass_harms_what_it_must_not(
    history: list[tuple[list[PodFacts], int]],
    backoff_limit: int,
    spec: dict[str, Any],
    nodes: list[str],
) -> None:
    life = Life(a_job_view(runPolicy={"backoffLimit": backoff_limit}, **spec))
    for pods, seconds in history:
        life.now += timedelta(seconds=seconds)
        life.pods, life.nodes = pods, nodes_on(*nodes)
        before = life.status
        step = life.step()
        assert step == life.step(), "a crash repeats the step"
        assert step.status.attempt >= before.attempt
        assert step.status.restarts.failures >= before.restarts.failures
        assert step.status.restarts.total >= before.restarts.total
        assert step.status.restarts.failures <= backoff_limit + 1
        assert all(attempt < before.attempt for attempt in step.old_attempts)
        assert not step.ended_pods or before.phase == "Failed"
        known = {(str(pod.attempt), str(pod.worker)) for pod in pods}
        for manifest in step.pods:
            labels = manifest["metadata"]["labels"]
            assert labels["kopeck.dev/attempt"] == str(before.attempt), "status comes first"
            place = (labels["kopeck.dev/attempt"], labels["kopeck.dev/worker"])
            assert place not in known, "a pod that exists is not made again"
            decided = before.effective is not None and before.effective.nccl is not None
            assert decided == bool(spec), "a decision comes before pods with GPUs"
        if before.phase in ("Complete", "Failed"):
            assert step.status.phase == before.phase
        life.write(step.status)


@given(seen_pods(), st.permutations(range(7)))
def test_the_order_of_pods_does_not_matter(pods: list[PodFacts], order: list[int]) -> None:
    life = Life()
    life.go_on()
    shuffled = [pods[index] for index in order if index < len(pods)]
    one = plan(life.job, pods, "exporter:1", T0)
    other = plan(life.job, shuffled, "exporter:1", T0)
    assert one.status == other.status
    assert one.pods == other.pods
