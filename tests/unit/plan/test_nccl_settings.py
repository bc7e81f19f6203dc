"""What is said of the user's settings by the spec alone."""

from typing import Any

import pytest

from kopeck.api.trainingjob import parse_spec
from kopeck.plan.nccl_settings import nccl_warnings
from kopeck.topology.harmful_settings import Harm
from tests.builders import a_job

TYPE = "node.kubernetes.io/instance-type"


def warned(
    env: list[dict[str, Any]] | None = None,
    selector: Any = None,
    limits: dict[str, str] | None = None,
    gpus: int = 8,
    **nccl: str,
) -> list[tuple[str, Harm]]:
    template: dict[str, Any] = {"containers": [{"name": "trainer", "env": env or []}]}
    if selector is not None:
        template["nodeSelector"] = selector
    workers = {
        "gpusPerWorker": gpus,
        "resources": {"limits": limits or {}},
        "template": {"spec": template},
    }
    spec = parse_spec(a_job(workers=workers, nccl={"env": nccl})["spec"])
    return [(each.name, each.harm) for each in nccl_warnings(spec, None, {})]


def test_both_places_are_judged_and_the_template_wins() -> None:
    off, on = {"name": "NCCL_IB_DISABLE", "value": "0"}, {"name": "NCCL_IB_DISABLE", "value": "1"}
    assert warned(NCCL_IB_DISABLE="1") == [("NCCL_IB_DISABLE", Harm.COST)]
    assert warned([on]) == [("NCCL_IB_DISABLE", Harm.COST)]
    assert warned([on], NCCL_IB_DISABLE="0") == [("NCCL_IB_DISABLE", Harm.COST)]
    assert warned([off], NCCL_IB_DISABLE="1") == []


@pytest.mark.parametrize(
    "env", [[{"name": "NCCL_IB_DISABLE", "valueFrom": {}}], [{"value": "1"}], []]
)
def test_a_value_that_the_spec_does_not_hold_is_not_judged(env: list[dict[str, Any]]) -> None:
    assert warned(env) == []


def test_a_job_without_gpus_does_not_use_nccl() -> None:
    assert warned(gpus=0, NCCL_P2P_DISABLE="1") == []


@pytest.mark.parametrize(
    ("selector", "limits", "harm"),
    [
        (None, None, Harm.DATA),
        ("no mapping", None, Harm.DATA),
        ({"eks.amazonaws.com/nodegroup": "gpus"}, None, Harm.DATA),
        ({TYPE: "p5.48xlarge"}, None, Harm.DATA),
        (None, {"vpc.amazonaws.com/efa": "32"}, Harm.DATA),
        (None, {"rdma/ib": "8"}, Harm.COST),
        ({TYPE: "Standard_ND96isr_H100_v5"}, None, Harm.COST),
        ({TYPE: "g6.xlarge"}, None, Harm.COST),
        ({"cloud.google.com/gke-accelerator": "nvidia-h100-mega-80gb"}, None, None),
    ],
)
def test_the_nodes_that_a_job_asks_for_tell_how_bad_a_protocol_is(
    selector: Any, limits: dict[str, str] | None, harm: Harm | None
) -> None:
    found = warned(selector=selector, limits=limits, NCCL_PROTO="LL128")
    assert found == ([("NCCL_PROTO", harm)] if harm else [])
