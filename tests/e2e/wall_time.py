"""What the phases of every attempt add up to, against the times of its container.

They are compared at each report, and at the end wherever a launcher lived to tell it.

A thread asks all workers of a namespace while a test runs, so that attempts count that fail, are
killed, or are deleted with their pods. The times are containerd's: Kubernetes has whole seconds.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
import requests

from kopeck.api.names import EXPORTER_PORT, LABEL_JOB, TRAINER_CONTAINER
from tests.asking import queried
from tests.cluster import LocalCluster
from tests.kube_client import KubeClient
from tests.waiting import eventually
from tests.workplace import jobs_path

LOOK_SECONDS = 0.5
TOLERATED_RATIO = 0.01
ROUNDED_SECONDS = 0.02
"""Linux tells the start of a process in hundredths of a second."""

LEAVING_SECONDS = 0.1
"""From what the launcher told last until it is gone: it writes the termination message, and leaves
at once. It is some 0.01 s."""

RUNTIME_SECONDS = 0.1
"""From there to containerd's word. Its shim takes the time when it reaps the launcher, and so after
the kernel has ended all else in the container: some 0.01 s. All of them are processes that wait for
their turn where both cores are busy."""

END_SECONDS = LEAVING_SECONDS + RUNTIME_SECONDS

CONTAINERS = "containerd/io.containerd.grpc.v1.cri/containers"


@dataclass(frozen=True, kw_only=True)
class Told:
    """What the phases of a worker added up to when it reported, in Unix time."""

    reported_at: float
    seconds: float


@dataclass(kw_only=True)
class Worker:
    """One training container: its times, in Unix time, and what was reported from inside."""

    pod: str
    has_entrypoint: bool
    created_at: float | None = None
    """Its first process starts after this, and before `started_at`: some 0.1 s lie between them."""
    started_at: float | None = None
    finished_at: float | None = None
    has_told_its_end: bool = False
    """Its launcher has left a termination message."""
    was_killed: bool = False
    """A signal ended a rank, perhaps before it could tell anything."""
    has_completed: bool = False
    told: set[Told] = field(default_factory=set)

    def add(self, report: dict[str, Any]) -> None:
        """A termination message or /progress; without phases it tells nothing."""
        if phases := report.get("phaseSeconds"):
            self.told.add(Told(reported_at=report["reportedAt"], seconds=sum(phases.values())))

    @property
    def last(self) -> Told | None:
        return max(self.told, key=lambda each: each.reported_at, default=None)

    def wrongs(self) -> Iterator[str]:
        """Where the phases are not the wall time: at each report, and at the end."""
        if self.last is None or self.started_at is None or self.created_at is None:
            if self.has_entrypoint and self.has_told_its_end and not self.was_killed:
                yield f"{self.pod} has told no phases"
            return
        for told in self.told:
            least, most = told.reported_at - self.started_at, told.reported_at - self.created_at
            if not is_between(told.seconds, least, most):
                yield f"{self.pod}, at a report: {told}, {least} to {most} s after its start"
        if self.has_told_its_end and self.finished_at:
            least, most = self.finished_at - self.started_at, self.finished_at - self.created_at
            missing_seconds = least - self.last.seconds
            surplus_seconds = self.last.seconds - most
            if (
                missing_seconds > max(END_SECONDS, TOLERATED_RATIO * least)
                or surplus_seconds > ROUNDED_SECONDS
            ):
                yield f"{self.pod}, at its end: {self.last.seconds} s, not {least} to {most}"

    def __str__(self) -> str:
        if self.last is None or self.started_at is None:
            return f"{self.pod}: told nothing"
        wall = self.last.reported_at - self.started_at
        ratio = self.last.seconds / wall - 1
        said = f"{self.pod}: {self.last.seconds:.3f} s of {wall:.3f} s ({ratio:+.2%})"
        if self.created_at:
            said += f", created {self.started_at - self.created_at:.3f} s before"
        if self.finished_at:
            said += f", ended {self.finished_at - self.last.reported_at:.3f} s later"
        return said


def is_between(seconds: float, least: float, most: float) -> bool:
    """To 1 %."""
    smallest = least * (1 - TOLERATED_RATIO) - ROUNDED_SECONDS
    largest = most * (1 + TOLERATED_RATIO) + ROUNDED_SECONDS
    return smallest <= seconds <= largest


@dataclass
class Workers:
    """Those that a namespace has had, by pod."""

    kube: KubeClient
    state: Path
    """The cluster's folder."""
    namespace: str
    by_pod: dict[str, Worker] = field(default_factory=dict)

    def look(self) -> None:
        """See all that there are now."""
        jobs = self.kube.list(jobs_path(self.namespace))
        specs = {each["metadata"]["name"]: each["spec"] for each in jobs}
        for pod in self.kube.list(f"/api/v1/namespaces/{self.namespace}/pods", LABEL_JOB):
            spec = specs.get(pod["metadata"]["labels"][LABEL_JOB], {})
            self._see(pod, has_entrypoint="entrypoint" in spec)

    def _see(self, pod: dict[str, Any], *, has_entrypoint: bool) -> None:
        container = trainer_of(pod)
        if container is None:
            return
        name = pod["metadata"]["name"]
        worker = self.by_pod.setdefault(name, Worker(pod=name, has_entrypoint=has_entrypoint))
        self._see_times(worker, pod["spec"]["nodeName"], container["containerID"])
        worker.add(progress_of(pod))
        ended = container["state"].get("terminated", {})
        if message := ended.get("message"):
            report = json.loads(message)
            worker.add(report)
            worker.has_told_its_end = True
            worker.was_killed = "signal" in report.get("firstFailure", {})
            worker.has_completed = ended["exitCode"] == 0

    def _see_times(self, worker: Worker, node: str, container: str) -> None:
        """What is known stays once the kubelet has removed the container."""
        folder = self.state / node / CONTAINERS / container.rpartition("//")[2]
        try:
            times = json.loads((folder / "status").read_text())
        except (OSError, ValueError):
            return
        worker.created_at = times["CreatedAt"] / 1e9
        worker.started_at = times["StartedAt"] / 1e9 or None
        worker.finished_at = times["FinishedAt"] / 1e9 or None


@contextmanager
def phases_are_wall_time(
    cluster: LocalCluster, prometheus_url: str, namespace: str
) -> Iterator[None]:
    """Of all workers that the namespace has while the block runs, in what they tell and export."""
    workers = Workers(KubeClient(cluster.kubeconfig), cluster.state, namespace)
    with looking_at(workers):
        yield
    sys.stdout.writelines(f"{worker}\n" for worker in workers.by_pod.values())
    wrongs = [wrong for worker in workers.by_pod.values() for wrong in worker.wrongs()]
    assert not wrongs, "\n".join(wrongs)
    eventually(lambda: prometheus_has_the_last_phases(prometheus_url, workers))


@contextmanager
def looking_at(workers: Workers) -> Iterator[None]:
    stopped = Event()
    errors: list[Exception] = []

    def look_on() -> None:
        while not stopped.wait(LOOK_SECONDS) and not errors:
            try:
                workers.look()
            except Exception as error:  # noqa: BLE001  it is raised in the test's own thread
                errors.append(error)

    thread = Thread(target=look_on)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()
    if errors:
        raise errors[0]


def prometheus_has_the_last_phases(prometheus_url: str, workers: Workers) -> None:
    """Of those that completed: nobody deletes their pods, and sidecars wait for a last scrape."""
    labels = f'namespace="{workers.namespace}"'
    query = f"sum by (pod) (max_over_time(kopeck_phase_seconds_total{{{labels}}}[1h]))"
    found = queried(prometheus_url, query)
    exported = {each["metric"]["pod"]: float(each["value"][1]) for each in found}
    for worker in workers.by_pod.values():
        if worker.has_completed and worker.last:
            seconds = exported.get(worker.pod, 0.0)
            assert seconds == pytest.approx(worker.last.seconds, abs=ROUNDED_SECONDS), worker


def trainer_of(pod: dict[str, Any]) -> dict[str, Any] | None:
    """The status of the training container; None until there is one."""
    containers = pod["status"].get("containerStatuses", [])
    found = [each for each in containers if each["name"] == TRAINER_CONTAINER]
    return found[0] if found and found[0].get("containerID") else None


def progress_of(pod: dict[str, Any]) -> dict[str, Any]:
    """What the exporter says; nothing before it serves and once it is gone."""
    try:
        address = f"http://{pod['status']['podIP']}:{EXPORTER_PORT}/progress"
        progress: dict[str, Any] = requests.get(address, timeout=2).json()
    except (KeyError, requests.RequestException):
        return {}
    return progress
