"""`kopeck topology needs`: what NCCL needs in the pods of a node of the cluster, and why."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from kopeck.api.errors import ConfigError
from kopeck.api.names import GPU_RESOURCE
from kopeck.topology.environment import pod_needs
from kopeck.topology.needs import ConfigMapMount, Need, PodNeeds, TopologyFile
from kopeck.topology.node import NodeFacts, node_facts
from kopeck.topology.pod import PodView
from kopeck.topology.resources import Request


def needs(
    node: Annotated[str, typer.Argument(help="A node of the cluster.")],
    workers: Annotated[int, typer.Option(min=1, help="Pods of the job, one on a node.")] = 2,
    kubeconfig: Annotated[
        Path | None, typer.Option(help="Default: KUBECONFIG, or the pod's service account.")
    ] = None,
) -> None:
    """Print what a pod with all GPUs of a node needs to reach the others, each with its reason.

    The pods of a TrainingJob get it by themselves where all nodes that they may get need the same.
    """
    facts = asyncio.run(_node(node, kubeconfig))
    pod = PodView(gpus=facts.gpus, resources=frozenset({GPU_RESOURCE, "memory"}))
    Console(highlight=False).print(_tree(node, pod_needs(facts, pod, workers=workers)))


async def _node(name: str, kubeconfig: Path | None) -> NodeFacts:
    # Heavy libraries are loaded by the command that needs them.
    from kubernetes.aio.client import ApiClient  # noqa: PLC0415

    from kopeck.kube.api import Api  # noqa: PLC0415
    from kopeck.kube.cluster import Cluster  # noqa: PLC0415
    from kopeck.kube.connection import connection  # noqa: PLC0415

    async with ApiClient(await connection(kubeconfig)) as client:
        manifest = await Cluster(Api(client, lambda *_: None)).node(name)
    if manifest is None:
        raise ConfigError(name, "is no node of the cluster", "use a name of kubectl get nodes")
    return node_facts(manifest)


def _tree(node: str, found: PodNeeds) -> Tree:
    platform = found.platform
    tree = Tree(Text(f"{node}: {platform.platform} ({platform.reason})", style="bold"))
    for each in found.needs:
        tree.add(Text(_sentence(each)))
    return tree


def _sentence(need: Need) -> str:
    match need:
        case TopologyFile():
            return f"set {need.variable}={need.path}: {need.reason}"
        case Request():
            return f"request {need.resource}: {need.quantity} ({need.reason})"
        case ConfigMapMount():
            source = f"ConfigMap {need.namespace}/{need.name}"
            return f"mount {need.key} of {source} at {need.path}: {need.reason}"
        case _:
            return need.sentence
