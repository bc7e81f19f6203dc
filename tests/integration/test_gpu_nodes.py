"""What an operator has seen of nodes with GPUs, and when it looks again.

Each test has an operator of its own: no two of them may work on one cluster.
"""

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

from aiohttp import web
from kubernetes.aio.client import ApiClient

from kopeck.control.gpu_nodes import GpuNodes
from kopeck.kube.api import Api
from kopeck.kube.cluster import Cluster
from kopeck.kube.connection import connection
from tests.api_proxy import ApiProxy, Call, Forward
from tests.fake_pods import path_of
from tests.operator_process import OperatorProcess
from tests.platforms import PLATFORMS, OnPlatform, a_job_on, create_nodes
from tests.waiting import eventually
from tests.workplace import Workplace

ON = {each.name: each for each in PLATFORMS}
JOBS_AT_ONCE = 20


def decided(workplace: Workplace, name: str) -> dict[str, Any]:
    nccl: dict[str, Any] | None = workplace.status(name).get("effective", {}).get("nccl")
    assert nccl is not None, workplace.status(name)
    return nccl


def test_a_running_attempt_outlives_a_restart_and_new_nodes_and_the_next_is_decided_anew(
    workplace: Workplace, tmp_path: Path
) -> None:
    selected = {"pool": workplace.namespace}
    nodes = create_nodes(workplace.cluster, ON["azure-nd-h100-v5"], **selected)
    with OperatorProcess(workplace.cluster.kubeconfig, tmp_path) as operator:
        operator.wait_until_in_sync()
        name = workplace.create(a_job_on(selected))
        first, _ = workplace.running_pods(name, attempt=0, count=2)
        before = decided(workplace, name)
        operator.kill()
        nodes += create_nodes(workplace.cluster, ON["aws-p5"], 1, **selected)
        operator.start()
        operator.wait_until_in_sync()
        workplace.running_pods(name, attempt=0, count=2)
        assert decided(workplace, name) == before

        workplace.kube.delete(path_of(first))
        eventually(lambda: differs(workplace, name))
        assert workplace.status(name)["attempt"] == 1
        for pod in workplace.running_pods(name, attempt=1, count=2):
            variables = {each["name"] for each in pod["spec"]["containers"][0]["env"]}
            assert "NCCL_TOPO_FILE" not in variables
    workplace.cluster.kubectl("delete", "node", *nodes)


def differs(workplace: Workplace, name: str) -> None:
    assert workplace.condition(name, "PlatformKnown")["reason"] == "NodesDiffer"


class ListsOfNodes:
    """An interception that counts them and lets everything pass."""

    def __init__(self) -> None:
        self.count = 0

    async def __call__(self, call: Call, forward: Forward) -> web.StreamResponse:
        self.count += call.path == "/api/v1/nodes"
        return await forward()


def test_jobs_that_begin_together_share_the_list_of_nodes(
    workplace: Workplace, tmp_path: Path
) -> None:
    lists = ListsOfNodes()
    with ApiProxy(workplace.cluster.kubeconfig, tmp_path) as proxy:
        proxy.interception = lists
        with OperatorProcess(proxy.kubeconfig, tmp_path) as operator:
            operator.wait_until_in_sync()
            for number in range(JOBS_AT_ONCE):
                workplace.create(a_job_on({"pool": "nowhere"}, f"job-{number}"))
            for number in range(JOBS_AT_ONCE):
                eventually(partial(decided, workplace, f"job-{number}"))
    assert 1 <= lists.count <= JOBS_AT_ONCE / 2


def test_the_list_of_nodes_is_shared_while_it_is_young_and_read_again_when_it_is_old(
    control_plane: Any,
) -> None:
    on = OnPlatform(name="late", platform="other")
    names = create_nodes(control_plane, on, 1)
    lists: list[str] = []
    seconds = 0.0

    async def look() -> None:
        nonlocal seconds
        configuration = await connection(control_plane.kubeconfig)
        async with ApiClient(configuration) as client:
            cluster = Cluster(Api(client, lambda _, path, __: lists.append(path)))
            nodes = GpuNodes(cluster, lambda: seconds)
            first, *others = await asyncio.gather(*(nodes.all() for _ in range(5)))
            assert {node.name for node in first} >= set(names)
            assert all(other == first for other in others)
            names.extend(create_nodes(control_plane, on, 1))
            seconds = 9.0
            assert await nodes.all() == first
            assert lists == ["/api/v1/nodes"]
            seconds = 11.0
            assert {node.name for node in await nodes.all()} >= set(names)
            assert len(lists) == 2

    asyncio.run(look())
    control_plane.kubectl("delete", "node", *names)
