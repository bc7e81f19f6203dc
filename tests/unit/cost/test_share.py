"""Which part of its node a pod pays."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopeck.cost.share import effective_requests, node_capacity, node_share

CPU_NODE = node_capacity({"cpu": "32", "memory": "128Gi", "pods": "110"})
GPU_NODE = node_capacity({"cpu": "192", "memory": "2Ti", "nvidia.com/gpu": "8"})
# Decimal has 28 digits: a third is a little more or less than a third.
ROUNDING = Decimal("1e-25")


def container(name: str = "main", *, limits: Any = None, **requests: str) -> dict[str, Any]:
    resources = {"requests": requests} | ({"limits": limits} if limits else {})
    return {"name": name, "resources": resources}


def sidecar(**requests: str) -> dict[str, Any]:
    return container("sidecar", **requests) | {"restartPolicy": "Always"}


def requested(*containers: Any, init: Any = (), **spec: Any) -> dict[str, Decimal]:
    return effective_requests({"containers": containers, "initContainers": init, **spec})


def of(**numbers: str) -> dict[str, Decimal]:
    return {name: Decimal(number) for name, number in numbers.items()}


def test_containers_hold_their_requests_together() -> None:
    assert requested(container(cpu="500m"), container(cpu="2", memory="1Gi")) == {
        "cpu": Decimal("2.5"),
        "memory": Decimal(2**30),
    }


def test_a_small_init_container_holds_nothing_more() -> None:
    assert requested(container(cpu="2"), init=[container(cpu="1")]) == of(cpu="2")


def test_a_large_init_container_holds_its_node_until_the_pod_ends() -> None:
    assert requested(container(cpu="2"), init=[container(cpu="5")]) == of(cpu="5")


def test_init_containers_run_one_after_the_other() -> None:
    assert requested(container(cpu="1"), init=[container(cpu="3"), container(cpu="4")]) == of(
        cpu="4"
    )


def test_a_sidecar_runs_beside_the_containers() -> None:
    assert requested(container(cpu="2"), init=[sidecar(cpu="100m")]) == of(cpu="2.1")


def test_an_init_container_runs_beside_the_sidecars_before_it_only() -> None:
    init = [sidecar(cpu="1"), container(cpu="5"), sidecar(cpu="2")]
    assert requested(container(cpu="1"), init=init) == of(cpu="6")


def test_sidecars_start_beside_each_other() -> None:
    init = [sidecar(cpu="1"), sidecar(cpu="2")]
    assert requested(container(cpu="1"), init=init) == of(cpu="4")


def test_each_resource_has_its_own_larger_side() -> None:
    start = container(cpu="1", memory="8")
    assert requested(container(cpu="4", memory="2"), init=[start]) == of(cpu="4", memory="8")


def test_overhead_comes_on_top() -> None:
    assert requested(
        container(cpu="2"), init=[container(cpu="3")], overhead={"cpu": "250m", "memory": "64"}
    ) == of(cpu="3.25", memory="64")


def test_requests_of_the_pod_as_a_whole_come_first() -> None:
    whole = {"requests": {"cpu": "8"}}
    assert requested(container(cpu="2", memory="1"), resources=whole) == of(cpu="8", memory="1")


def test_a_limit_without_a_request_is_one() -> None:
    limited = container(limits={"cpu": "4", "nvidia.com/gpu": "2"}, cpu="1")
    assert requested(limited) == {"cpu": Decimal(1), "nvidia.com/gpu": Decimal(2)}


def test_a_pod_that_requests_nothing_holds_nothing() -> None:
    assert requested({"name": "main"}) == {}
    assert requested({"name": "main", "resources": None}) == {}


def test_a_cpu_node_is_paid_half_by_cores_and_half_by_memory() -> None:
    assert node_share(of(cpu="16", memory=str(32 * 2**30)), CPU_NODE) == Decimal("0.375")


def test_a_gpu_node_is_paid_by_gpus_only() -> None:
    two = {"cpu": Decimal(192), "memory": Decimal(1), "nvidia.com/gpu": Decimal(2)}
    assert node_share(two, GPU_NODE) == Decimal("0.25")


def test_a_cpu_only_pod_on_a_gpu_node_is_unknown_and_not_free() -> None:
    assert node_share(of(cpu="8", memory="1024"), GPU_NODE) is None


@pytest.mark.parametrize("node", [CPU_NODE, GPU_NODE])
@pytest.mark.parametrize("part", ["nvidia.com/mig-1g.10gb", "nvidia.com/gpu.shared"])
def test_a_part_of_a_gpu_is_unknown_and_not_priced_as_cores(node: Any, part: str) -> None:
    assert node_share(of(cpu="8", memory="1073741824") | {part: Decimal(1)}, node) is None


def test_a_pod_without_requests_is_unknown_and_not_free() -> None:
    assert node_share({}, CPU_NODE) is None


def test_gpus_of_two_makes_in_one_node_are_shared_out_together() -> None:
    both = node_capacity({"cpu": "8", "memory": "1", "nvidia.com/gpu": "6", "amd.com/gpu": "2"})
    assert node_share({"nvidia.com/gpu": Decimal(6)}, both) == Decimal("0.75")
    assert node_share({"amd.com/gpu": Decimal(2)}, both) == Decimal("0.25")


def test_a_node_whose_capacity_is_not_known_yet_shares_out_nothing() -> None:
    assert node_share(of(cpu="1"), node_capacity({})) is None


@pytest.mark.parametrize("capacity", [{"nvidia.com/gpu": "0"}, {}])
def test_a_node_with_no_gpus_is_a_cpu_node(capacity: Mapping[str, str]) -> None:
    node = node_capacity({"cpu": "2", "memory": "2"} | capacity)
    assert node_share(of(cpu="1", memory="1"), node) == Decimal("0.5")


amounts = st.integers(1, 10_000)


@st.composite
def full_nodes(draw: st.DrawFn) -> tuple[dict[str, str], list[dict[str, Decimal]]]:
    """A node's capacity, and requests that fit it: whatever is free is split at random."""
    resources = draw(
        st.lists(st.sampled_from(["nvidia.com/gpu", "amd.com/gpu"]), unique=True, max_size=2)
    )
    capacity = {name: draw(amounts) for name in ["cpu", "memory", *resources]}
    pods: list[dict[str, Decimal]] = []
    free = dict(capacity)
    for _ in range(draw(st.integers(1, 12))):
        pod = {name: draw(st.integers(0, left)) for name, left in free.items()}
        free = {name: left - pod[name] for name, left in free.items()}
        pods.append({name: Decimal(amount) for name, amount in pod.items() if amount})
    pods.append({name: Decimal(left) for name, left in free.items() if left})
    return {name: str(amount) for name, amount in capacity.items()}, pods


@given(full_nodes())
def test_shares_of_pods_that_fit_a_node_never_exceed_one(
    node: tuple[dict[str, str], list[dict[str, Decimal]]],
) -> None:
    capacity, pods = node
    shares = [node_share(requests, node_capacity(capacity)) for requests in pods]
    assert sum((share for share in shares if share), Decimal(0)) <= 1 + ROUNDING


@given(full_nodes())
def test_a_share_is_unknown_or_between_zero_and_one(
    node: tuple[dict[str, str], list[dict[str, Decimal]]],
) -> None:
    capacity, pods = node
    for requests in pods:
        share = node_share(requests, node_capacity(capacity))
        assert share is None or 0 < share <= 1
