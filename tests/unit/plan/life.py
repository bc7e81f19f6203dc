"""The life of a job for tests: what is planned, written and done, pass after pass."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from kopeck.api.status import TrainingJobStatus
from kopeck.plan.candidate_nodes import GpuNode, gpu_node
from kopeck.plan.job_view import JobView
from kopeck.plan.nccl_decision import Hidden, Surroundings, agreement_on, awaits_decision
from kopeck.plan.plan import plan
from kopeck.plan.pod_facts import PodFacts
from kopeck.plan.pods import Sidecar
from kopeck.plan.step import Step
from tests.builders import T0, a_job_view, a_report, ended, facts_of, waiting
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
        return plan(self.job, self.pods, Sidecar("exporter:1"), self.now, self.surroundings())

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


def creates_nothing(step: Step) -> bool:
    return not (step.pods or step.service or step.config)


EIGHT_GPUS = {
    "workers": {"gpusPerWorker": 8},
    "training": {"steps": 20, "globalBatchSize": 64, "microBatchSize": 4},
}


def nodes_on(*names: str) -> list[GpuNode]:
    platforms = {each.name: each for each in PLATFORMS}
    found = [gpu_node(node_manifest(platforms[name], name)) for name in names]
    return [node for node in found if node]
