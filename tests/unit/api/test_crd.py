"""The CustomResourceDefinition: explained, and sparing with what the API server may do."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kopeck.api.crd import crd


def root_schema() -> dict[str, Any]:
    schema: dict[str, Any] = crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def fields(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every field below a schema, by its path."""
    for name, field in schema.get("properties", {}).items():
        yield f"{path}.{name}", field
        yield from fields(field, f"{path}.{name}")
    for inner in ("items", "additionalProperties"):
        if inner in schema:
            yield from fields(schema[inner], f"{path}[]")


def ours() -> list[tuple[str, dict[str, Any]]]:
    root = root_schema()["properties"]
    return [
        *fields(root["spec"], "spec"),
        *fields(root["status"], "status"),
        ("spec", root["spec"]),
        ("status", root["status"]),
    ]


def nodes(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
        for each in schema.values():
            yield from nodes(each)


@pytest.mark.parametrize(("path", "field"), ours(), ids=[path for path, _ in ours()])
def test_every_field_is_explained(path: str, field: dict[str, Any]) -> None:
    assert field.get("description", "").endswith((".", "`")), path


@pytest.mark.parametrize(("path", "field"), ours(), ids=[path for path, _ in ours()])
def test_every_field_has_a_type(path: str, field: dict[str, Any]) -> None:
    kinds = ("type", "x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields")
    assert any(kind in field for kind in kinds), path


def test_every_rule_has_a_sentence_that_says_what_to_write() -> None:
    rules = [
        rule for node in nodes(root_schema()) for rule in node.get("x-kubernetes-validations", [])
    ]
    assert rules
    for rule in rules:
        assert len(rule["message"].split()) > 3, rule
        assert not rule["message"].endswith("."), rule
        assert "\n" not in rule["message"], rule


def test_what_a_user_writes_once_for_many_pods_is_bounded_so_that_rules_stay_cheap() -> None:
    for path, field in fields(root_schema()["properties"]["spec"]):
        if field.get("type") == "array" and "x-kubernetes-validations" in str(field):
            assert "maxItems" in field, path


def test_scale_and_status_are_subresources() -> None:
    subresources = crd()["spec"]["versions"][0]["subresources"]
    assert subresources["status"] == {}
    assert subresources["scale"]["specReplicasPath"] == ".spec.workers.replicas"


@pytest.mark.parametrize("column", crd()["spec"]["versions"][0]["additionalPrinterColumns"])
def test_every_printer_column_shows_a_field_that_exists(column: dict[str, Any]) -> None:
    known = {f".{path}" for path, _ in ours()} | {".metadata.creationTimestamp"}
    assert column["jsonPath"] in known


def test_no_default_holds_null_which_a_server_side_apply_is_refused_for() -> None:
    defaults = [each["default"] for each in nodes(root_schema()) if "default" in each]
    assert len(defaults) > 10
    assert all("null" not in json.dumps(each) for each in defaults)
