"""The CustomResourceDefinition, generated from the types.

JSON schema of pydantic becomes a Kubernetes structural schema: references are inlined, `null`
alternatives dropped, unions of number and text become int-or-string, CEL rules are attached.
"""

from collections.abc import Sequence
from typing import Any

from kopeck.api.names import GROUP, KIND, PLURAL, SHORT_NAME, VERSION
from kopeck.api.spec import OpenSpec, Rule, Spec
from kopeck.api.status import TrainingJobStatus
from kopeck.api.trainingjob import NAME_RULES, TrainingJobSpec

_PRINTER_COLUMNS = (
    ("State", ".status.phase", "string", 0),
    ("Workers", ".status.display.workers", "string", 0),
    ("Step", ".status.display.step", "string", 0),
    ("$/1K-Samples", ".status.display.costPer1kSamples", "string", 0),
    ("Spent", ".status.display.spent", "string", 0),
    ("Age", ".metadata.creationTimestamp", "date", 0),
    ("Mode", ".status.training.compileMode", "string", 1),
    ("Revision", ".status.effective.revision", "string", 1),
    ("Restarts", ".status.restarts.total", "integer", 1),
)


def crd() -> dict[str, Any]:
    """The CustomResourceDefinition of TrainingJob, as JSON."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": KIND,
                "listKind": f"{KIND}List",
                "plural": PLURAL,
                "singular": KIND.lower(),
                "shortNames": [SHORT_NAME],
                "categories": ["all", "ml"],
            },
            "versions": [_version()],
        },
    }


def _version() -> dict[str, Any]:
    return {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _root_schema()},
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.workers.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        },
        "selectableFields": [{"jsonPath": ".status.phase"}],
        "additionalPrinterColumns": [
            {"name": name, "jsonPath": path, "type": kind, "priority": priority}
            for name, path, kind, priority in _PRINTER_COLUMNS
        ],
    }


def _root_schema() -> dict[str, Any]:
    return {
        "type": "object",
        "description": "A training run whose dollars per sample kopeck measures and guards.",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": structural_schema(TrainingJobSpec),
            "status": structural_schema(TrainingJobStatus),
        },
        "x-kubernetes-validations": _validations(NAME_RULES),
    }


def structural_schema(model: type[Spec]) -> dict[str, Any]:
    """The Kubernetes structural schema of a type."""
    schema = model.model_json_schema(by_alias=True)
    models = {each.__name__: each for each in _models_below(Spec)}
    return _structural(schema | {"$name": model.__name__}, schema.get("$defs", {}), models)


def _models_below(base: type[Spec]) -> list[type[Spec]]:
    below = base.__subclasses__()
    return below + [deeper for each in below for deeper in _models_below(each)]


def _structural(
    node: dict[str, Any], definitions: dict[str, Any], models: dict[str, type[Spec]]
) -> dict[str, Any]:
    node = _without_null(node)
    if "$ref" in node:
        name = node["$ref"].rsplit("/", 1)[-1]
        described = {key: node[key] for key in ("description", "default") if key in node}
        return _structural(definitions[name] | {"$name": name} | described, definitions, models)
    if "anyOf" in node:
        return {"x-kubernetes-int-or-string": True} | _kept(node, ("description",))
    if isinstance(node.get("default"), dict):
        node = node | {"default": _set_fields(node["default"])}
    schema = _kept(
        node,
        [
            "type",
            "description",
            "default",
            "enum",
            "pattern",
            "minimum",
            "maximum",
            "minLength",
            "maxLength",
            "minItems",
            "maxItems",
            "required",
        ],
    )
    if "exclusiveMinimum" in node:
        schema |= {"minimum": node["exclusiveMinimum"], "exclusiveMinimum": True}
    if schema.get("type") == "integer":
        schema["format"] = "int64"
    if "items" in node:
        schema["items"] = _structural(node["items"], definitions, models)
    if "properties" in node:
        schema["properties"] = {
            name: _structural(each, definitions, models)
            for name, each in node["properties"].items()
        }
        return schema | _of_model(models[node["$name"]])
    return schema | _of_map(node, definitions, models)


def _without_null(node: dict[str, Any]) -> dict[str, Any]:
    """A node whose `T or null` is T, without empty defaults: an unset field is absent."""
    empty: tuple[Any, ...] = (None, {}, [], "")
    node = {key: value for key, value in node.items() if key != "default" or value not in empty}
    alternatives: list[dict[str, Any]] = [
        each for each in node.get("anyOf", []) if each != {"type": "null"}
    ]
    if len(alternatives) != 1:
        return node
    return {key: value for key, value in node.items() if key != "anyOf"} | alternatives[0]


def _set_fields(default: dict[str, Any]) -> dict[str, Any]:
    """The fields of a default that have a value: the API server takes null for none of them."""
    return {key: value for key, value in default.items() if value is not None}


def _kept(node: dict[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    return {key: node[key] for key in keys if key in node}


def _of_model(model: type[Spec]) -> dict[str, Any]:
    extra: dict[str, Any] = {}
    if model.cel_rules:
        extra["x-kubernetes-validations"] = _validations(model.cel_rules)
    if issubclass(model, OpenSpec):
        extra["x-kubernetes-preserve-unknown-fields"] = True
    return extra


def _of_map(
    node: dict[str, Any], definitions: dict[str, Any], models: dict[str, type[Spec]]
) -> dict[str, Any]:
    values = node.get("additionalProperties")
    if values is True:
        return {"x-kubernetes-preserve-unknown-fields": True}
    if not values:
        return {}
    limit = _kept(node, ("maxProperties",))
    return {"additionalProperties": _structural(values, definitions, models)} | limit


def _validations(rules: Sequence[Rule]) -> list[dict[str, str]]:
    return [rule.as_validation() for rule in rules]
