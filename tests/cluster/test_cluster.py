import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pytest
import requests

from tests.cluster import ClusterError, ExistingCluster, LocalCluster, existing_cluster
from tests.cluster.addresses import Addresses
from tests.cluster.cache import cache_folder
from tests.cluster.commands import run
from tests.cluster.containers import socket_of
from tests.cluster.images import KOPECK_IMAGE, REPOSITORY
from tests.cluster.kwok import plays_stages
from tests.cluster.nodes import kubelet_root
from tests.cluster.pod_targets import pod_targets
from tests.cluster.processes import recorded
from tests.cluster.record import Record, read, remove
from tests.cluster.sandbox import INIT_NAME
from tests.cluster.waiting import wait_until
from tests.demo_setting import on
from tests.waiting import eventually

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="real nodes need root")
SERVER = ["python3", "-m", "http.server", "8000"]
CLIENT = """
import time, urllib.request
while True:
    try:
        print(urllib.request.urlopen("http://one.pair:8000/", timeout=2).status)
        break
    except OSError:
        time.sleep(0.1)
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster.start(tmp_path_factory.mktemp("real")) as started:
        yield started


@pytest.fixture(scope="module")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster.start(tmp_path_factory.mktemp("fake"), nodes=0, kwok=True) as started:
        yield started


def a_pod(name: str, command: list[str], **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "pair"}},
        "spec": {
            "hostname": name,
            "subdomain": "pair",
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "containers": [a_container("main", command)],
            **spec,
        },
    }


def a_container(name: str, command: list[str], **fields: Any) -> dict[str, Any]:
    return {"name": name, "image": KOPECK_IMAGE, "command": command, **fields}


def a_headless_service() -> dict[str, Any]:
    spec = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": {"app": "pair"},
        "ports": [{"port": 8000}],
    }
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "pair"}, "spec": spec}


def create(cluster: LocalCluster, *objects: dict[str, Any], namespace: str = "default") -> None:
    stdin = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    cluster.kubectl("create", "--namespace", namespace, "--filename=-", stdin=stdin)


def assert_phase(cluster: LocalCluster, pod: str, phase: str) -> None:
    found = cluster.kubectl("get", "pod", pod, "--output=jsonpath={.status.phase}")
    assert found == phase, cluster.kubectl("describe", "pod", pod)


@needs_root
def test_a_cluster_starts_when_the_cache_holds_no_store_of_its_nodes_yet(
    tmp_path: Path,
) -> None:
    cold = tmp_path / "cache" / "kopeck"
    cold.mkdir(parents=True)
    for entry in cache_folder().iterdir():
        if entry.name != "store":
            (cold / entry.name).symlink_to(entry)
    state = tmp_path / "state"
    up = [sys.executable, "-m", "tests.cluster", "up", "--state", str(state)]
    subprocess.run(up, env=os.environ | {"XDG_CACHE_HOME": str(cold.parent)}, check=True)
    with LocalCluster.load(state) as started:
        assert list(started.endpoint.nodes().values()) == [True, True]


@needs_root
def test_all_real_nodes_are_ready_and_say_where_they_are(cluster: LocalCluster) -> None:
    assert cluster.endpoint.nodes() == {"node-1": True, "node-2": True}
    zones = "jsonpath={.items[*].metadata.labels.topology\\.kubernetes\\.io/zone}"
    assert cluster.kubectl("get", "nodes", "--output", zones) == "local-1 local-2"


@needs_root
def test_pods_of_two_nodes_find_each_other_by_name_also_a_native_sidecar(
    cluster: LocalCluster,
) -> None:
    sidecar = a_container("server", SERVER, restartPolicy="Always")
    create(
        cluster,
        a_headless_service(),
        a_pod("one", ["sleep", "600"], nodeName="node-1", initContainers=[sidecar]),
        a_pod("two", ["python3", "-c", CLIENT], nodeName="node-2"),
    )
    eventually(lambda: assert_phase(cluster, "two", "Succeeded"), seconds=60)
    assert cluster.kubectl("logs", "two") == "200\n"
    address = cluster.kubectl("get", "pod", "one", "--output=jsonpath={.status.podIP}")
    assert requests.get(f"http://{address}:8000/", timeout=5).ok  # from the host as well


@needs_root
def test_a_pod_trains_with_the_images_python_and_the_volumes_of_its_namespace(
    cluster: LocalCluster,
) -> None:
    cluster.kubectl("create", "namespace", "team")
    cluster.provide_volumes("team")
    program = "import torch; torch.save(torch.ones(2), '/checkpoints/ones')"
    mounts: list[dict[str, Any]] = [
        {"name": "kopeck-site", "mountPath": "/site", "readOnly": True},
        {"name": "kopeck-checkpoints", "mountPath": "/checkpoints"},
    ]
    pod = a_pod(
        "trainer",
        [],
        securityContext={"runAsUser": 1000, "runAsGroup": 1000},
        containers=[a_container("main", ["python3", "-c", program], volumeMounts=mounts)],
        volumes=[
            {"name": mount["name"], "persistentVolumeClaim": {"claimName": mount["name"]}}
            for mount in mounts
        ],
    )
    create(cluster, pod, namespace="team")

    def the_checkpoint_is_on_the_host() -> None:
        assert (cluster.checkpoints("team") / "ones").exists()

    eventually(the_checkpoint_is_on_the_host, seconds=120)


@needs_root
def test_a_killed_kubelet_comes_back(cluster: LocalCluster) -> None:
    def kubelets() -> list[int]:
        return [
            process.pid
            for process in recorded(cluster.state)
            if process.name == "node-2-kubelet" and process.is_alive()
        ]

    before = kubelets()
    cluster.kill_kubelet("node-2")
    assert kubelets() == []
    cluster.start_kubelet("node-2")
    assert len(kubelets()) == 1
    assert kubelets() != before


@needs_root
def test_a_second_cluster_meets_no_other_and_leaves_no_trace(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    with LocalCluster.start(tmp_path / "state", nodes=1) as second:
        create(second, a_pod("one", ["sleep", "600"]))
        eventually(lambda: assert_phase(second, "one", "Running"), seconds=60)
        assert second.endpoint.nodes() == {"node-1": True}
        assert cluster.endpoint.nodes().keys() == {"node-1", "node-2"}
        traces = Traces.of(second.state)
        assert traces.remaining() != []
    eventually(lambda: assert_gone(traces))


@needs_root
def test_down_ends_a_cluster_whose_start_was_killed_and_may_be_said_twice(tmp_path: Path) -> None:
    state = tmp_path / "state"
    command = [sys.executable, "-m", "tests.cluster", "up", "--nodes", "1", "--state", str(state)]
    with subprocess.Popen(command, cwd=REPOSITORY, stderr=subprocess.DEVNULL) as starter:
        wait_until(
            lambda: "node-1-kubelet" in {process.name for process in recorded(state)},
            "a kubelet of the cluster that is starting",
            seconds=120,
        )
        starter.send_signal(signal.SIGKILL)
    traces = Traces.of(state)
    for _ in range(2):
        remove(state)
    eventually(lambda: assert_gone(traces))


def assert_gone(traces: "Traces") -> None:
    assert traces.remaining() == []


@dataclass(frozen=True)
class Traces:
    """Where to look for what is left of one cluster; other clusters may come and go meanwhile."""

    record: Record
    addresses: Addresses
    state: Path
    namespaces: set[str]

    @classmethod
    def of(cls, state: Path) -> Self:
        """Those of the cluster that runs in this folder."""
        (init,) = [process for process in recorded(state) if process.name == INIT_NAME]
        links = [Path(f"/proc/{init.pid}/ns/{kind}") for kind in ("net", "mnt", "pid")]
        record = read(state)
        assert record is not None
        assert record.addresses is not None
        return cls(record, record.addresses, state, {str(link.readlink()) for link in links})

    def remaining(self) -> list[str]:
        """Folders, mounts, device, route, firewall rules, cgroups, processes that are left."""
        cgroups = Path("/sys/fs/cgroup").glob(f"**/kopeck-{self.record.id}-*")
        return [
            *(folder for folder in self._folders() if Path(folder).exists()),
            *_lines_with(self._folders(), Path("/proc/self/mountinfo").read_text()),
            *_lines_with([f" {self.addresses.link}@"], run(["ip", "link"])),
            *_lines_with(self._address_prefixes(), run(["ip", "route"])),
            *_lines_with(self._address_prefixes(), run(["nft", "list", "ruleset"])),
            *(str(cgroup) for cgroup in cgroups),
            *self._processes(),
        ]

    def _folders(self) -> list[str]:
        """Its own, and those that its nodes have in the sandbox, where they cover the host's."""
        sockets = [Path(socket_of(node.name)) for node in self.record.nodes]
        roots = [kubelet_root(node) for node in self.record.nodes]
        return [str(self.state), *roots, *(str(socket.parent) for socket in sockets)]

    def _address_prefixes(self) -> list[str]:
        """Of nodes and pods; kube-proxy writes both into its rules."""
        networks = self.addresses.nodes, self.addresses.pods
        return [str(network.network_address).removesuffix("0") for network in networks]

    def _processes(self) -> Iterator[str]:
        for link in Path("/proc").glob("[0-9]*/ns/*"):
            with suppress(OSError):  # it has ended meanwhile, or is a zombie
                if str(link.readlink()) in self.namespaces:
                    yield str(link)


def _lines_with(texts: list[str], lines: str) -> list[str]:
    return [line for line in lines.splitlines() if any(text in line for text in texts)]


def test_a_cluster_that_has_come_up_plays_the_stages_of_fake_nodes(tmp_path: Path) -> None:
    with LocalCluster.start(tmp_path, nodes=0, kwok=True) as started:
        kwok = next(process for process in recorded(started.state) if process.name == "kwok")
        assert plays_stages(kwok)


def test_fake_nodes_run_pods_without_a_machine(control_plane: LocalCluster) -> None:
    names = control_plane.create_fake_nodes(
        2, prefix="gpu", labels={"pool": "gpu"}, capacity={"nvidia.com/gpu": "8"}
    )
    assert names == ["gpu-0", "gpu-1"]
    gpus = {"limits": {"nvidia.com/gpu": "8"}}
    pods = [
        a_pod(f"train-{number}", [], containers=[a_container("main", [], resources=gpus)])
        for number in range(2)
    ]
    create(control_plane, *pods)
    eventually(lambda: assert_phase(control_plane, "train-0", "Running"))
    eventually(lambda: assert_phase(control_plane, "train-1", "Running"))


@pytest.mark.skipif(
    shutil.which("prometheus") is None and os.geteuid() != 0,
    reason="prometheus is missing, and to install it needs root",
)
def test_prometheus_scrapes_the_targets_it_is_given(control_plane: LocalCluster) -> None:
    url = control_plane.start_prometheus(targets=["127.0.0.1:9"], scrape_interval_seconds=1)

    def the_target_is_known() -> None:
        found = requests.get(f"{url}/api/v1/query", {"query": "up"}, timeout=5).json()
        instances = [sample["metric"]["instance"] for sample in found["data"]["result"]]
        assert instances == ["127.0.0.1:9"]

    eventually(the_target_is_known)


def test_prometheus_is_pointed_at_ports_named_metrics_of_sidecars_too() -> None:
    exporter = {"name": "exporter", "ports": [{"name": "metrics", "containerPort": 9401}]}
    trainer = {"name": "trainer", "ports": [{"name": "rendezvous", "containerPort": 29500}]}
    pod = {
        "metadata": {"namespace": "team", "name": "job-w0"},
        "spec": {"initContainers": [exporter], "containers": [trainer]},
        "status": {"podIP": "10.0.0.7"},
    }
    labels = {"namespace": "team", "pod": "job-w0"}
    assert pod_targets([pod]) == [{"targets": ["10.0.0.7:9401"], "labels": labels}]


def test_a_cluster_named_by_kubeconfig_is_used_and_left_alone(
    control_plane: LocalCluster,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'absent'}:{control_plane.kubeconfig}")
    found = existing_cluster()
    assert found is not None
    assert found.api_url == control_plane.api_url
    assert "default" in found.kubectl("get", "namespaces")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "absent"))
    assert existing_cluster() is None
    assert f"KUBECONFIG ({tmp_path / 'absent'}) is not used" in capsys.readouterr().err


def test_the_demo_asks_for_an_image_that_a_cluster_of_the_users_can_pull(
    control_plane: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KOPECK_IMAGE", raising=False)
    with pytest.raises(ClusterError, match="set KOPECK_IMAGE to one that its nodes can pull"):
        on(ExistingCluster(str(control_plane.kubeconfig), control_plane.api_url))


def test_a_folder_with_other_files_is_not_taken_for_a_cluster(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(ClusterError, match="holds no cluster and is not empty"):
        remove(tmp_path)
    assert (tmp_path / "thesis.tex").exists()


def test_a_folder_in_use_is_not_taken_for_another_cluster(control_plane: LocalCluster) -> None:
    with pytest.raises(ClusterError, match="end it with `down`"):
        LocalCluster.start(control_plane.state, nodes=0)
