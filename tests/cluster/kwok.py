"""KWOK: nodes without a machine, whose pods live as Stage objects say."""

from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic_ns
from typing import Any

from tests.cluster.addresses import FAKE_POD_BLOCK
from tests.cluster.binaries import binary, kwok_module
from tests.cluster.place import Place
from tests.cluster.processes import Process
from tests.cluster.waiting import wait_until

FAKE = "kwok.x-k8s.io/node"
STAGE_CRD = "kustomize/crd/bases/kwok.x-k8s.io_stages.yaml"
FAST_STAGES = ("kustomize/stage/node/fast", "kustomize/stage/pod/fast")


def stage_crd() -> Path:
    """The definition of Stage objects."""
    return kwok_module() / STAGE_CRD


def fast_stages() -> list[Path]:
    """Nodes are ready at once, pods run at once and go at once, those of Jobs succeed at once."""
    return [
        file
        for folder in FAST_STAGES
        for file in sorted((kwok_module() / folder).glob("*.yaml"))
        if file.name != "kustomization.yaml"
    ]


def start_kwok(place: Place, kubeconfig: Path) -> Process:
    """Start KWOK for the nodes of `fake_nodes`; the cluster must know Stage objects by now."""
    return place.start(
        "kwok",
        binary("kwok"),
        f"--kubeconfig={kubeconfig}",
        f"--manage-nodes-with-annotation-selector={FAKE}=fake",
        "--enable-crds=Stage",  # so that tests can add and remove stages while it runs
        "--server-address=127.0.0.1:0",
        f"--cidr={FAKE_POD_BLOCK[1]}/{FAKE_POD_BLOCK.prefixlen}",
    )


def wait_until_played(kwok: Process, kubectl: Callable[..., str]) -> None:
    """Return once KWOK plays the stages of nodes and of pods.

    `kubectl` is that of its cluster. Raises ClusterError where KWOK ends or is not in time.
    """

    def is_played() -> bool:
        if plays_stages(kwok):
            return True
        # KWOK 0.8 may read an empty cache when it first hears of its stages, one start in some
        # hundreds, and then waits for the next change of any (resources/cache.go).
        kubectl("annotate", "stages", "--all", "--overwrite", f"touched={monotonic_ns()}")
        return False

    wait_until(is_played, "KWOK to play its stages", watched=[kwok])


def plays_stages(kwok: Process) -> bool:
    """Whether KWOK has said that it plays the stages of nodes and of pods."""
    return Path(kwok.log).read_text().count('"msg":"Start stage controller"') >= 2


def fake_nodes(
    prefix: str,
    count: int,
    labels: Mapping[str, str],
    capacity: Mapping[str, str],
    *,
    tainted: bool,
) -> dict[str, Any]:
    """Nodes for KWOK to keep ready, as one List; the taint keeps real pods away from them."""
    taints = [{"key": FAKE, "value": "fake", "effect": "NoSchedule"}] if tainted else []
    has = {"cpu": "64", "memory": "512Gi", "pods": "1000", **capacity}
    return {
        "apiVersion": "v1",
        "kind": "List",
        "items": [
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {
                    "name": f"{prefix}-{number}",
                    "annotations": {FAKE: "fake"},
                    "labels": {"type": "kwok", **labels},
                },
                "spec": {"taints": taints},
                "status": {"allocatable": has, "capacity": has},
            }
            for number in range(count)
        ],
    }
