"""A cluster of our own on this machine."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.cluster import kwok as kwok_stages
from tests.cluster import prometheus
from tests.cluster.binaries import binary
from tests.cluster.commands import run
from tests.cluster.containers import import_image
from tests.cluster.controlplane import HOST_ADDRESS
from tests.cluster.definitions import wait_until_served
from tests.cluster.endpoint import Endpoint
from tests.cluster.errors import ClusterError
from tests.cluster.images import write_operator_image
from tests.cluster.nodes import Node, kubelet_of, start_kubelet
from tests.cluster.place import Place
from tests.cluster.processes import Process, end, recorded
from tests.cluster.record import Record, new_record, read, remove
from tests.cluster.sandbox import INIT_NAME
from tests.cluster.site_packages import site_packages
from tests.cluster.startup import is_isolated, prepare, start_in_sandbox, start_on_host
from tests.cluster.volumes import SITE_CLAIM, checkpoints_folder, volume_names, volume_objects
from tests.cluster.waiting import wait_until


@dataclass(frozen=True)
class LocalCluster:
    """A cluster that runs; as a context manager, it is stopped at the block's end."""

    state: Path
    record: Record
    endpoint: Endpoint

    @classmethod
    def start(cls, state: Path, *, nodes: int = 2, kwok: bool = False) -> Self:
        """Bring a cluster up with its files in `state`, a folder that is empty or not there yet.

        With `nodes` 0 it is a control plane alone, which needs no root. With `kwok` it can have
        fake nodes. Raises ClusterError, and leaves nothing behind, where it cannot.
        """
        state = state.resolve()
        prepare(nodes=nodes, kwok=kwok)
        record = new_record(state, nodes)
        try:
            (start_in_sandbox if is_isolated(nodes) else start_on_host)(state, record)
            cluster = cls.load(state)
            if kwok:
                cluster._start_kwok()
        except BaseException:
            remove(state)
            raise
        return cluster

    @classmethod
    def load(cls, state: Path) -> Self:
        """The cluster that runs in `state`. Raises ClusterError where there is none."""
        state = state.resolve()
        record = read(state)
        if record is None or record.endpoint is None:
            raise ClusterError(f"no cluster runs in {state}; start one with `up`")
        return cls(state, record, record.endpoint)

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig; it holds all that is needed to reach the cluster."""
        return self.state / "kubeconfig"

    @property
    def api_url(self) -> str:
        return self.endpoint.url

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the real nodes."""
        return tuple(node.name for node in self.record.nodes)

    @property
    def host_address(self) -> str:
        """The host, as pods reach it."""
        return self.record.addresses.host if self.record.addresses else HOST_ADDRESS

    def kubectl(self, *args: str, stdin: str | None = None) -> str:
        """Standard output of kubectl. Raises ClusterError, with what it said, if it fails."""
        command = [str(binary("kubernetes")), "kubectl", f"--kubeconfig={self.kubeconfig}"]
        return run([*command, *args], stdin=stdin)

    def provide_volumes(self, namespace: str) -> None:
        """Give a namespace the claims `kopeck-site` (torch, numpy) and `kopeck-checkpoints`."""
        if SITE_CLAIM in self.kubectl("get", "pvc", "--namespace", namespace, "--output=name"):
            return
        # Those of an earlier namespace of this name would stay bound to its claims.
        self.kubectl("delete", "pv", "--ignore-not-found", *volume_names(namespace))
        objects = volume_objects(self.state, namespace, site_packages("trainer"))
        self.kubectl("create", "--filename=-", stdin=json.dumps(objects))

    def provide_operator_image(self) -> None:
        """Give every node the image `localhost/kopeck-operator:dev`, of the working tree."""
        archive = write_operator_image(self.state)
        for node in self.nodes:
            import_image(self._place(), node, archive)
        archive.unlink()

    def checkpoints(self, namespace: str) -> Path:
        """The host's folder behind a namespace's claim `kopeck-checkpoints`."""
        return checkpoints_folder(self.state, namespace)

    def kill_kubelet(self, node: str) -> None:
        """Kill a node's kubelet without warning; its pods go on."""
        end(self.state, kubelet_of(node))

    def start_kubelet(self, node: str) -> None:
        """Start a node's kubelet again."""
        end(self.state, kubelet_of(node))
        start_kubelet(self._place(), self._node(node), self.kubeconfig)

    def create_fake_nodes(
        self,
        count: int,
        *,
        prefix: str = "fake",
        labels: Mapping[str, str] | None = None,
        capacity: Mapping[str, str] | None = None,
    ) -> list[str]:
        """Create nodes for KWOK and return their names, `prefix`-0 first, once they are ready."""
        nodes = kwok_stages.fake_nodes(
            prefix, count, labels or {}, capacity or {}, tainted=bool(self.nodes)
        )
        self.kubectl("create", "--filename=-", stdin=json.dumps(nodes))
        names = [node["metadata"]["name"] for node in nodes["items"]]
        wait_until(
            lambda: {name for name, ready in self.endpoint.nodes().items() if ready} >= set(names),
            f"{count} fake nodes",
            watched=[self._process("kwok")],
        )
        return names

    def start_prometheus(
        self, *, targets: Sequence[str] = (), scrape_interval_seconds: int = 5
    ) -> str:
        """Start a Prometheus on the host, in place of an earlier one, and return its URL.

        It scrapes pods at their container port `metrics`, and `targets`, each as host:port.
        """
        return prometheus.start_prometheus(self.state, targets, scrape_interval_seconds)

    def stop(self) -> None:
        """End it and remove its folder."""
        remove(self.state)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _start_kwok(self) -> None:
        self.kubectl("create", f"--filename={kwok_stages.stage_crd()}")
        wait_until_served(self.kubectl, "stages.kwok.x-k8s.io")
        stages = [f"--filename={file}" for file in kwok_stages.fast_stages()]
        self.kubectl("create", *stages)
        kwok = kwok_stages.start_kwok(self._place(), self.kubeconfig)
        kwok_stages.wait_until_played(kwok, self.kubectl)

    def _place(self) -> Place:
        inits = [process for process in recorded(self.state) if process.name == INIT_NAME]
        return Place(self.state, inits[0] if inits else None)

    def _process(self, name: str) -> Process:
        return next(process for process in recorded(self.state) if process.name == name)

    def _node(self, name: str) -> Node:
        return next(node for node in self.record.nodes if node.name == name)
