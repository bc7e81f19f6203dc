"""Which nodes a pod may get, as far as its template says."""

from typing import Any

import pytest

from kopeck.plan.candidate_nodes import GpuNode, candidates, gpu_node
from tests.platforms import OnPlatform, node_manifest

GPUS = {"nvidia.com/gpu": "8"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def a_node(name: str = "node-0", gpus: int = 8, **spec: Any) -> GpuNode:
    labels = {"pool": "a", "generation": "5", "zone": ""}
    on = OnPlatform(name="", platform="", more_labels=labels, offers={"nvidia.com/gpu": str(gpus)})
    found = gpu_node(node_manifest(on, name, **spec))
    assert found is not None
    return found


def suits(pod_spec: dict[str, Any], *nodes: GpuNode, requested: Any = None) -> list[str]:
    return [
        node.name for node in candidates(pod_spec, GPUS if requested is None else requested, nodes)
    ]


def affinity(*terms: Any) -> dict[str, Any]:
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("pod_spec", "fits"),
    [
        ({}, True),
        ({"nodeSelector": None}, True),
        ({"nodeSelector": {"pool": "a", "generation": "5"}}, True),
        ({"nodeSelector": {"pool": "a", "generation": "4"}}, False),
        ({"nodeSelector": {"missing": "a"}}, False),
        ({"nodeName": "node-0"}, True),
        ({"nodeName": "node-1"}, False),
        (affinity(expression("pool", "In", "b", "a")), True),
        (affinity(expression("pool", "In", "b")), False),
        (affinity(expression("missing", "In", "b")), False),
        (affinity(expression("pool", "NotIn", "b")), True),
        (affinity(expression("missing", "NotIn", "b")), True),
        (affinity(expression("pool", "NotIn", "a")), False),
        (affinity(expression("zone", "Exists")), True),
        (affinity(expression("missing", "Exists")), False),
        (affinity(expression("missing", "DoesNotExist")), True),
        (affinity(expression("pool", "DoesNotExist")), False),
        (affinity(expression("generation", "Gt", "4")), True),
        (affinity(expression("generation", "Gt", "5")), False),
        (affinity(expression("generation", "Lt", "6")), True),
        (affinity(expression("pool", "Lt", "6")), False),
        (affinity(expression("missing", "Lt", "6")), False),
        (affinity(expression("generation", "Gt")), False),
        (affinity(expression("pool", "Odd", "a")), False),
        (affinity(expression("pool", "In", "b"), expression("pool", "In", "a")), True),
        (affinity({}), False),
        (affinity(), False),
        (
            affinity(
                {
                    "matchExpressions": [
                        {"key": "pool", "operator": "Exists"},
                        {"key": "pool", "operator": "In", "values": ["b"]},
                    ]
                }
            ),
            False,
        ),
        (
            affinity(
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-0"]}]}
            ),
            True,
        ),
        (
            affinity(
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["other"]}]}
            ),
            False,
        ),
        ({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": 1}}}, 1),
    ],
)
def test_selectors_and_required_affinity_choose_nodes_as_the_scheduler_does(
    pod_spec: dict[str, Any],
    *,
    fits: bool,
) -> None:
    assert suits(pod_spec, a_node()) == (["node-0"] if fits else [])


TAINT = {"key": "team", "value": "nlp", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("taint", "tolerations", "fits"),
    [
        (TAINT, [], False),
        (TAINT | {"effect": "NoExecute"}, [], False),
        (TAINT | {"effect": "PreferNoSchedule"}, [], True),
        (TAINT, [{"operator": "Exists"}], True),
        (TAINT, [{"key": "team", "operator": "Exists"}], True),
        (TAINT, [{"key": "other", "operator": "Exists"}], False),
        (TAINT, [{"key": "team", "value": "nlp"}], True),
        (TAINT, [{"key": "team", "operator": "Equal", "value": "nlp"}], True),
        (TAINT, [{"key": "team", "value": "vision"}], False),
        (TAINT, [{"key": "team", "value": "nlp", "effect": "NoExecute"}], False),
        (TAINT, [{"key": "team", "value": "nlp", "effect": "NoSchedule"}], True),
        ({"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}, [], True),
    ],
)
def test_taints_keep_away_pods_that_do_not_tolerate_them(
    taint: dict[str, str], tolerations: list[dict[str, str]], *, fits: bool
) -> None:
    found = suits({"tolerations": tolerations}, a_node(taints=[taint]))
    assert found == (["node-0"] if fits else [])


@pytest.mark.parametrize(
    ("requested", "fits"),
    [
        ({"nvidia.com/gpu": "8", "cpu": "64"}, True),
        ({"nvidia.com/gpu": 8}, True),
        ({"nvidia.com/gpu": "16"}, False),
        ({"nvidia.com/gpu": "8", "rdma/ib": "1"}, False),
        ({"nvidia.com/gpu": "8", "memory": "1Ti"}, False),
        ({"nvidia.com/gpu": "8", "memory": "much"}, True),
    ],
)
def test_nodes_that_could_never_hold_the_pod_are_left_out(
    requested: dict[str, Any], *, fits: bool
) -> None:
    assert suits({}, a_node(), requested=requested) == (["node-0"] if fits else [])


@pytest.mark.parametrize(
    "trouble",
    [
        {"unschedulable": True},
        {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]},
        {"taints": [{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]},
    ],
)
def test_a_node_in_trouble_counts_only_where_no_other_suits(trouble: dict[str, Any]) -> None:
    troubled = a_node("troubled", **trouble)
    assert suits({}, troubled, a_node("sound")) == ["sound"]
    assert suits({}, troubled) == ["troubled"]


def test_a_node_without_gpus_is_not_remembered() -> None:
    bare = {"metadata": {"name": "cpu"}, "spec": {}, "status": {"allocatable": {"cpu": "4"}}}
    assert gpu_node(bare) is None
    assert gpu_node({"metadata": {"name": "new"}}) is None


@pytest.mark.parametrize(
    "pod_spec",
    [
        {"nodeSelector": "pool"},
        {"affinity": []},
        {"tolerations": "all"},
        {"affinity": {"nodeAffinity": {REQUIRED: "none"}}},
        {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": {"a": 1}}}}},
        affinity({"matchExpressions": [7]}, {"matchExpressions": {"key": "pool"}}),
        affinity(expression("pool", "In") | {"matchFields": None}),
    ],
)
def test_a_template_of_any_shape_is_read(pod_spec: dict[str, Any]) -> None:
    assert suits(pod_spec, a_node(taints=[TAINT])) == []
    assert suits(pod_spec, a_node()) in ([], ["node-0"])
