"""What NCCL needs on all the nodes that a job's pods may get, if it is the same on each."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kopeck.api.names import GPU_RESOURCE
from kopeck.api.trainingjob import TrainingJobSpec
from kopeck.plan.candidate_nodes import GpuNode, candidates
from kopeck.topology.environment import pod_needs
from kopeck.topology.needs import PodNeeds
from kopeck.topology.platform import Cloud, Platform
from kopeck.topology.pod import PodView, pod_view, requested_amounts, training_container


@dataclass(frozen=True)
class Agreement:
    """What is rendered, and the word and the sentence that say why."""

    reason: str
    message: str
    needs: PodNeeds | None = None
    """None where nothing is rendered."""
    platform: str | None = None
    """None where it is unknown, or one of several that need the same."""


def agreement_of(
    spec: TrainingJobSpec, pod: Mapping[str, Any], workers: int, nodes: Sequence[GpuNode]
) -> Agreement:
    """Of the nodes that suit a worker's pod, which is a manifest without what is decided here."""
    requested = requested_amounts(training_container(pod["spec"]))
    suitable = candidates(pod["spec"], requested, nodes)
    view = pod_view(pod)
    if not suitable:
        return _no_node(view)
    first_of_kind: dict[Hashable, GpuNode] = {}
    for node in suitable:
        first_of_kind.setdefault(node.kind, node)
    needs = [(node, _needs(spec, view, workers, node)) for node in first_of_kind.values()]
    first_node, first = needs[0]
    for node, other in needs:
        if _rendered(other) != _rendered(first):
            return _nodes_differ((first_node, first), (node, other))
        if workers > 1 and spec.nccl.platform == "auto" and _is_unknown(other):
            return _no_rule(node, other)
    return _known([each for _, each in needs])


def _needs(spec: TrainingJobSpec, view: PodView, workers: int, node: GpuNode) -> PodNeeds:
    platform = None if spec.nccl.platform == "auto" else Platform(spec.nccl.platform)
    return pod_needs(
        node.facts,
        view,
        workers=workers,
        platform=platform,
        brings_topology=spec.nccl.topology == "auto",
    )


def _rendered(needs: PodNeeds) -> tuple[Any, ...]:
    """What the pods get of needs, without the reasons."""
    return (
        needs.resources,
        [each.instance_type for each in needs.topology_files],
        [(each.namespace, each.name, each.path) for each in needs.config_maps],
    )


def _is_unknown(needs: PodNeeds) -> bool:
    return (needs.platform.platform, needs.platform.cloud) == (Platform.OTHER, Cloud.NONE)


def _no_node(view: PodView) -> Agreement:
    wrong = f"no node that suits the pods offers {view.gpus} {GPU_RESOURCE} and all that they ask"
    instead = (
        "check nodeSelector, affinity and tolerations in spec.workers.template; where nodes come"
        " only with the pods, write what they need into spec.workers.resources.limits and"
        " spec.nccl.env"
    )
    return Agreement("NoNode", f"{wrong}, so nothing of a platform is added; {instead}")


def _nodes_differ(one: tuple[GpuNode, PodNeeds], other: tuple[GpuNode, PodNeeds]) -> Agreement:
    both = " and ".join(
        f"{node.name} ({needs.platform.platform}: {_told(needs)})" for node, needs in (one, other)
    )
    wrong = f"the pods suit nodes that need different things, {both}"
    instead = "select one kind of node in nodeSelector of spec.workers.template"
    return Agreement("NodesDiffer", f"{wrong}, so nothing of a platform is added; {instead}")


def _no_rule(node: GpuNode, needs: PodNeeds) -> Agreement:
    wrong = f"node {node.name}: {needs.platform.reason}, so nothing of a platform is added"
    instead = "set spec.nccl.platform, to other if the workers need nothing to reach each other"
    return Agreement("UnknownPlatform", f"{wrong}; {instead}")


def _known(needs: Sequence[PodNeeds]) -> Agreement:
    platforms = sorted({each.platform.platform.value for each in needs})
    first = needs[0]
    said = f"{' and '.join(platforms)}, by {first.platform.reason}; the pods get {_told(first)}"
    return Agreement("Known", said, first, platforms[0] if len(platforms) == 1 else None)


def _told(needs: PodNeeds) -> str:
    """What is rendered, in words."""
    variables = [f"{name}={value}" for name, value in needs.environment.items()]
    resources = [f"{name}: {quantity}" for name, quantity in needs.resources.items()]
    mounts = [f"{each.path} of {each.name}" for each in needs.config_maps]
    return ", ".join([*variables, *resources, *mounts]) or "nothing"
