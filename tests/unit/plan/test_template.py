"""A user's partial pod spec, merged over ours as `kubectl patch` would."""

from copy import deepcopy
from typing import Any

import pytest

from kopeck.api.errors import SpecError
from kopeck.plan.template import merged


def of_trainer(**fields: Any) -> dict[str, Any]:
    return {"containers": [{"name": "trainer", **fields}]}


OURS: dict[str, Any] = {
    "subdomain": "job-abcde",
    "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}],
    "securityContext": {"runAsNonRoot": True, "runAsUser": 1000},
    **of_trainer(
        env=[{"name": "KOPECK_JOB", "value": "job"}],
        volumeMounts=[{"name": "ours", "mountPath": "/dev/shm"}],  # noqa: S108  in the pod
    ),
}


def trainer(theirs: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = merged(OURS, theirs)["containers"][0]
    return found


def test_an_empty_template_changes_nothing() -> None:
    assert merged(OURS, {}) == OURS


def test_neither_side_is_changed() -> None:
    before, theirs = deepcopy(OURS), of_trainer(env=[{"name": "A", "value": "1"}])
    merged(OURS, theirs)
    assert before == OURS
    assert theirs == of_trainer(env=[{"name": "A", "value": "1"}])


def test_environment_is_appended() -> None:
    theirs = of_trainer(env=[{"name": "NCCL_DEBUG", "value": "INFO"}])
    assert [each["name"] for each in trainer(theirs)["env"]] == ["KOPECK_JOB", "NCCL_DEBUG"]


def test_a_mount_of_the_same_path_takes_the_place_of_ours() -> None:
    theirs = of_trainer(
        volumeMounts=[
            {"name": "theirs", "mountPath": "/dev/shm"},  # noqa: S108  in the pod
            {"name": "data", "mountPath": "/data"},
        ]
    )
    assert [(each["mountPath"], each["name"]) for each in trainer(theirs)["volumeMounts"]] == [
        ("/dev/shm", "theirs"),  # noqa: S108  in the pod
        ("/data", "data"),
    ]


def test_a_container_of_their_own_stands_beside_the_trainer() -> None:
    theirs = {"containers": [{"name": "shipper", "image": "fluent"}]}
    containers = merged(OURS, theirs)["containers"]
    assert [each["name"] for each in containers] == ["trainer", "shipper"]


def test_mappings_are_merged_field_by_field() -> None:
    context = merged(OURS, {"securityContext": {"runAsUser": 7}})["securityContext"]
    assert context == {"runAsNonRoot": True, "runAsUser": 7}


def test_a_list_without_keys_is_replaced_as_a_whole() -> None:
    theirs = {"tolerations": [{"key": "gpu", "operator": "Exists"}]}
    assert merged(OURS, theirs)["tolerations"] == theirs["tolerations"]


def test_what_we_do_not_set_is_taken_as_it_is() -> None:
    theirs = {"nodeSelector": {"gpu": "h200"}, "volumes": [{"name": "data", "emptyDir": {}}]}
    assert merged(OURS, theirs) == OURS | theirs


def test_the_same_template_again_changes_nothing() -> None:
    theirs = of_trainer(
        env=[{"name": "A", "value": "1"}], volumeMounts=[{"name": "d", "mountPath": "/d"}]
    )
    once = merged(OURS, theirs)
    assert merged(once, theirs) == once


@pytest.mark.parametrize(
    ("theirs", "wrong"),
    [
        (of_trainer(env=[{"value": "1"}]), "env: an item has no name"),
        (of_trainer(volumeMounts=[{"name": "d"}]), "volumeMounts: an item has no mountPath"),
        (of_trainer(env=["A=1"]), "env: an item has no name"),
        (of_trainer(env={"A": "1"}), "env: is no list"),
        (of_trainer(env=None), "env: is no list"),
    ],
)
def test_a_list_whose_items_cannot_be_told_apart_is_refused_by_a_sentence(
    theirs: dict[str, Any], wrong: str
) -> None:
    with pytest.raises(SpecError) as refused:
        merged(OURS, theirs)
    assert str(refused.value).startswith(f"spec.workers.template.spec: {wrong}; ")
