"""What a user is told of a change, once."""

from typing import Any

import pytest

from kopeck.api.status import (
    CheckpointRequest,
    Condition,
    Effective,
    EffectiveNccl,
    TrainingJobStatus,
    TrainingStatus,
)
from kopeck.control.events import transition_events
from tests.builders import T0, a_job_view

VENDOR = {"NCCL_ALGO": "Ring"}
"""Set by the provider's file."""


def told(before: TrainingJobStatus, after: TrainingJobStatus) -> list[tuple[str, str]]:
    job = a_job_view(before.model_dump(by_alias=True, exclude_none=True))
    return [(each["type"], each["reason"]) for each in transition_events(job, after, VENDOR, T0)]


def running(**training: int) -> TrainingJobStatus:
    condition = Condition(
        type="Running", status="True", reason="Running", message="all run", last_transition_time=""
    )
    figures = TrainingStatus.model_validate(training, by_name=True)
    return TrainingJobStatus(phase="Running", conditions=[condition], training=figures)


def test_a_new_phase_is_told() -> None:
    assert told(TrainingJobStatus(phase="Starting"), running()) == [("Normal", "Running")]


def test_new_figures_are_no_news() -> None:
    assert told(running(step=3), running(step=4)) == []


def test_what_became_of_a_request_for_a_checkpoint_is_told_once() -> None:
    waits, saved, refused = (
        running().model_copy(
            update={"checkpoint_request": CheckpointRequest(name="now", state=state)}
        )
        for state in ("Requested", "Saved", "Refused")
    )
    assert told(running(), waits) == []
    assert told(waits, saved) == [("Normal", "CheckpointSaved")]
    assert told(saved, saved) == []
    assert told(running(), refused) == [("Warning", "CheckpointRefused")]


def test_the_first_wrong_loss_is_told_and_no_later_one() -> None:
    diverged = running(step=4, nonfinite_losses=1)
    assert told(running(step=3), diverged) == [("Warning", "WrongLoss")]
    assert told(diverged, running(step=5, nonfinite_losses=2)) == []


def accepted(revision: str = "r1", **status: Any) -> TrainingJobStatus:
    return TrainingJobStatus(effective=Effective(revision=revision, workers=2), **status)


def decided(platform: str | None = None, **status: Any) -> TrainingJobStatus:
    effective = Effective(revision="r1", workers=2, nccl=EffectiveNccl(platform=platform))
    return TrainingJobStatus(effective=effective, **status)


def told_of_settings(
    before: TrainingJobStatus, after: TrainingJobStatus, **spec: Any
) -> list[tuple[str, str]]:
    job = a_job_view(before.model_dump(by_alias=True, exclude_none=True), **spec)
    return [(each["reason"], each["message"]) for each in transition_events(job, after, VENDOR, T0)]


def test_what_the_provider_sets_too_is_not_judged() -> None:
    for algorithm, reasons in (("Ring", []), ("Tree", ["CostlySetting"])):
        spec = {"workers": {"gpusPerWorker": 8}, "nccl": {"env": {"NCCL_ALGO": algorithm}}}
        told = told_of_settings(accepted(), decided("oci"), **spec)
        assert [reason for reason, _ in told] == reasons


COSTLY = {"workers": {"gpusPerWorker": 8}, "nccl": {"env": {"NCCL_P2P_DISABLE": "1"}}}


def test_what_settings_cost_is_told_once_the_nodes_of_a_revision_are_known() -> None:
    new_revision = {"attempt": 1, "restart_reason": "NewRevision"}
    for status in ({}, new_revision):
        [(reason, message)] = told_of_settings(accepted(**status), decided(**status), **COSTLY)
        assert reason == "CostlySetting"
        assert message.startswith("NCCL_P2P_DISABLE=1: ")
    assert told_of_settings(TrainingJobStatus(), accepted(), **COSTLY) == []
    assert told_of_settings(decided(), decided(), **COSTLY) == []
    lost = {"attempt": 1, "restart_reason": "PodLost"}
    assert told_of_settings(accepted(**lost), decided(**lost), **COSTLY) == []
    assert told_of_settings(TrainingJobStatus(), TrainingJobStatus(), **COSTLY) == []


def test_settings_of_gpus_that_wait_for_no_decision_are_judged_with_the_revision() -> None:
    amd = COSTLY | {"workers": {"gpusPerWorker": 8, "gpuResource": "amd.com/gpu"}}
    for before in (TrainingJobStatus(), accepted("r0")):
        [(reason, _)] = told_of_settings(before, accepted(), **amd)
        assert reason == "CostlySetting"
    assert told_of_settings(accepted(), accepted(), **amd) == []


@pytest.mark.parametrize(
    ("platform", "reason"),
    [("aws-efa", "UnsafeSetting"), ("azure-nd", "CostlySetting"), (None, "UnsafeSetting")],
)
def test_a_protocol_is_judged_by_the_platform_of_the_nodes(
    platform: str | None, reason: str
) -> None:
    spec = {"workers": {"gpusPerWorker": 8}, "nccl": {"env": {"NCCL_PROTO": "LL128"}}}
    [(told_reason, _)] = told_of_settings(accepted(), decided(platform), **spec)
    assert told_reason == reason


def platform_known(reason: str, message: str = "a sentence") -> TrainingJobStatus:
    status = "True" if reason in ("Known", "FabricIncomplete") else "False"
    condition = Condition(
        type="PlatformKnown", status=status, reason=reason, message=message, last_transition_time=""
    )
    return accepted(conditions=[condition])


@pytest.mark.parametrize("reason", ["FabricIncomplete", "NodesDiffer", "NoNode", "UnknownPlatform"])
def test_what_keeps_pods_from_the_fabric_is_told_when_it_changes(reason: str) -> None:
    lacks = platform_known(reason)
    assert told(accepted(), lacks) == [("Warning", reason)]
    assert told(platform_known("Known", "all is well"), lacks) == [("Warning", reason)]
    assert told(lacks, lacks) == []
    assert told(lacks, platform_known(reason, "another")) == [("Warning", reason)]


def test_a_platform_that_is_known_is_no_news() -> None:
    assert told(accepted(), platform_known("Known")) == []


def test_settings_that_cost_nothing_are_no_news() -> None:
    spec = {"workers": {"gpusPerWorker": 8}, "nccl": {"env": {"NCCL_DEBUG": "INFO"}}}
    assert told_of_settings(accepted(), decided(), **spec) == []
