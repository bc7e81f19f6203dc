"""What makes a new revision, and what does not."""

import json
from typing import Any

import pytest

from kopeck.api.job_key import JobKey
from kopeck.api.trainingjob import parse_spec
from kopeck.plan.revision import canonical_json, revision_hash, trainer_config
from kopeck.plan.shared_objects import headless_service, revision_config
from tests.builders import a_job

KEY = JobKey("default", "job", "abcdef")


def revision(**spec: Any) -> str:
    return revision_hash(parse_spec(a_job(**spec)["spec"]))


@pytest.mark.parametrize(
    "change",
    [
        {"workers": {"replicas": 4}},
        {"runPolicy": {"backoffLimit": 9}},
        {"runPolicy": {"startupDeadlineSeconds": 60}},
    ],
)
def test_size_and_policy_are_no_part_of_a_revision(change: dict[str, Any]) -> None:
    assert revision(**change) == revision()


@pytest.mark.parametrize(
    "default",
    [
        {"training": {"precision": "bf16"}},
        {"training": {"seed": 0}},
        {"training": {"compile": {"mode": "auto"}}},
        {"training": {"compile": {}}},
        {"training": {"data": {"padTo": []}}},
        {"nccl": {}},
        {"nccl": {"env": {}}},
        {"workers": {"gpusPerWorker": 0}},
        {"workers": {"gpuResource": "nvidia.com/gpu"}},
        {"parameters": {}},
    ],
)
def test_a_default_that_is_written_out_is_no_new_revision(default: dict[str, Any]) -> None:
    assert revision(**default) == revision()


@pytest.mark.parametrize(
    "change",
    [
        {"image": "localhost/kopeck:next"},
        {"parameters": {"dim": 64}},
        {"training": {"seed": 1}},
        {"training": {"onNonfiniteLoss": "fail"}},
        {"training": {"data": {"workers": 2}}},
        {"training": {"compile": {"mode": "off"}}},
        {"nccl": {"env": {"NCCL_DEBUG": "INFO"}}},
        {"workers": {"processesPerWorker": 2}},
        {"workers": {"template": {"spec": {"nodeSelector": {"gpu": "h200"}}}}},
    ],
)
def test_what_changes_training_is_a_new_revision(change: dict[str, Any]) -> None:
    assert revision(**change) != revision()


def test_the_order_of_words_is_no_part_of_a_revision() -> None:
    one, other = {"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"d": 3, "c": 2}, "a": 1}
    assert revision(parameters=one) == revision(parameters=other)


def test_a_revision_has_the_same_name_for_ever() -> None:
    assert revision() == "c8b0b33acc"


def test_the_trainer_reads_the_specs_own_words_and_no_unset_ones() -> None:
    spec = parse_spec(a_job(parameters={"dim": 64})["spec"])
    assert trainer_config(spec) == {
        "entrypoint": "byte_llama:build",
        "parameters": {"dim": 64},
        "training": {
            "steps": 20,
            "globalBatchSize": 16,
            "microBatchSize": 4,
            "precision": "bf16",
            "seed": 0,
            "compile": {"mode": "auto", "onGraphBreak": "allow", "numericsCheck": True},
            "data": {"padTo": [], "dropLast": False},
        },
    }


def test_a_revision_is_kept_in_a_config_map_that_cannot_change() -> None:
    spec = parse_spec(a_job()["spec"])
    config = revision_config(KEY, spec, "0123456789")
    assert config["immutable"] is True
    assert config["metadata"]["name"] == "job-abcde-0123456789"
    assert json.loads(config["data"]["config.json"]) == trainer_config(spec)


def test_json_is_canonical() -> None:
    assert canonical_json({"b": [1, 2], "a": "é"}) == '{"a":"\\u00e9","b":[1,2]}'


def test_the_service_names_pods_that_are_not_ready() -> None:
    service = headless_service(KEY)
    assert service["spec"] == {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": {"kopeck.dev/job-uid": "abcdef"},
    }
