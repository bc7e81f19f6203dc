"""What pods need of their nodes' platform, in the life of a job."""

from typing import Any

import pytest

from kopeck.api.errors import SpecError
from kopeck.plan.candidate_nodes import GpuNode
from kopeck.plan.step import Step
from kopeck.topology.layouts import nd_h100_v5
from kopeck.topology.writer import to_xml
from tests.builders import a_job_view, after
from tests.unit.plan.life import EIGHT_GPUS, Life, creates_nothing, nodes_on


def a_gpu_job(nodes: list[GpuNode], **spec: Any) -> Life:
    life = Life(a_job_view(**EIGHT_GPUS | spec), nodes=nodes)
    life.go_on()
    return life


def limits_of(step: Step) -> list[dict[str, str]]:
    return [pod["spec"]["containers"][0]["resources"]["limits"] for pod in step.pods]


def test_what_gpus_need_is_decided_in_writing_before_any_pod_is_made() -> None:
    life = a_gpu_job(nodes_on("azure-nd-h100-v5"))
    step = life.step()
    assert creates_nothing(step)
    assert step.nccl_config is not None
    life.go_on()
    assert life.status.effective is not None
    assert life.status.effective.nccl is not None
    assert life.status.effective.nccl.config_map == step.nccl_config["metadata"]["name"]
    assert life.condition("PlatformKnown")[:2] == ("True", "Known")
    assert limits_of(life.step()) == [{"nvidia.com/gpu": "8", "rdma/shared_ib": "1"}] * 2


def test_no_later_node_changes_an_attempt_and_the_next_one_is_decided_anew() -> None:
    life = a_gpu_job(nodes_on("aws-p5"))
    life.go_on()
    life.nodes = nodes_on("hgx")
    before = limits_of(life.go_on())
    assert before[0]["vpc.amazonaws.com/efa"] == "32"
    life.go_on()
    life.all_run()
    life.go_on()
    life.end(0, 1)
    life.go_on()
    assert life.status.effective is not None
    assert life.status.effective.nccl is None
    life.go_on()
    life.go_on()
    assert limits_of(life.step()) == [{"nvidia.com/gpu": "8", "rdma/hca": "8"}] * 2


def test_where_nodes_differ_the_job_runs_without_and_says_so() -> None:
    life = a_gpu_job(nodes_on("aws-p5", "hgx"))
    life.go_on()
    assert life.condition("PlatformKnown")[:2] == ("False", "NodesDiffer")
    assert limits_of(life.step()) == [{"nvidia.com/gpu": "8"}] * 2


def test_nodes_that_may_not_be_listed_hold_the_job_until_its_deadline() -> None:
    life = a_gpu_job([], runPolicy={"startupDeadlineSeconds": 60})
    life.refusal = 'nodes is forbidden: cannot list resource "nodes"'
    step = life.go_on()
    assert creates_nothing(step)
    assert step.due_at == after(seconds=10)
    assert life.condition("Running")[1:] == ("Refused", life.refusal)
    life.now = after(seconds=60)
    life.go_on()
    assert life.condition("Failed")[1] == "Refused"


def test_a_topology_file_that_is_not_there_holds_the_job_until_it_is() -> None:
    own = {"topology": "configMap", "topologyConfigMap": {"name": "mine"}}
    life = a_gpu_job([], nccl=own)
    life.config_maps = {("default", "mine"): None}
    step = life.go_on()
    assert creates_nothing(step)
    assert step.due_at == after(seconds=10)
    _, reason, message = life.condition("Running")
    assert reason == "InvalidTopology"
    assert message.startswith("spec.nccl.topologyConfigMap: there is no ConfigMap mine")
    life.config_maps = {("default", "mine"): {"topology.xml": to_xml(nd_h100_v5())}}
    life.go_on()
    assert len(life.step().pods) == 2


def test_a_job_that_asks_for_no_gpus_any_more_says_nothing_of_their_nodes() -> None:
    life = a_gpu_job(nodes_on("aws-p5"))
    life.go_on()
    life.go_on()
    life.change(workers={"gpusPerWorker": 0})
    life.go_on()
    assert [each.type for each in life.status.conditions] == ["Running"]


def test_a_template_that_takes_what_is_ours_is_refused_before_anything_is_decided() -> None:
    own = [{"name": "trainer", "env": [{"name": "KOPECK_JOB", "value": "mine"}]}]
    workers = {"gpusPerWorker": 8, "template": {"spec": {"containers": own}}}
    life = a_gpu_job(nodes_on("aws-p5"), workers=workers)
    with pytest.raises(SpecError, match="sets KOPECK_JOB, which is kopeck's"):
        life.step()
