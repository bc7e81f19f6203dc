"""Every generated file of the repository, from its source."""

from pathlib import Path
from typing import Any

import yaml

from kopeck.api.crd import crd
from kopeck.deploy.rbac import LABELS, NAME, rbac_objects
from kopeck.deploy.rules import rule_groups
from kopeck_exporter.reference import reference_page

_TEMPLATES = Path("charts/kopeck/templates")
_NAMESPACE = "kopeck-system"
_HEADER = "# Written by `make generate` from operator/kopeck/{source}.\n"
_EXAMPLE_HEADER = (
    "# What the operator is allowed, and no more: kubectl apply -f examples/rbac.yaml\n"
    + _HEADER.format(source="deploy/rbac.py")
)

_RULES_HEADER = (
    "# Steadiness of step times, for Prometheus' rule_files; docs/telemetry.md tells how to ask.\n"
    + _HEADER.format(source="deploy/rules.py")
)


def generated_files() -> dict[Path, str]:
    """The text of each file, by its path from the repository's root."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}}
    roles = rbac_objects("{{ .Release.Namespace }}")
    rules = {"groups": rule_groups()}
    return {
        Path("crds/kopeck.dev_trainingjobs.yaml"): _yaml(crd()),
        Path("docs/metrics.md"): reference_page(),
        Path("examples/prometheus-rules.yaml"): _RULES_HEADER + _yaml(rules),
        Path("examples/rbac.yaml"): _EXAMPLE_HEADER
        + _yaml(namespace, *rbac_objects(_NAMESPACE), flow=None),
        _TEMPLATES / "crd.yaml": _HEADER.format(source="api/crd.py") + _yaml(_kept_crd()),
        _TEMPLATES / "prometheusrule.yaml": _HEADER.format(source="deploy/rules.py")
        + _if_served("monitoring.coreos.com/v1", _prometheus_rule(rules)),
        _TEMPLATES / "rbac.yaml": _HEADER.format(source="deploy/rbac.py")
        + _yaml(*roles, flow=None),
    }


def _prometheus_rule(rules: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {
            "name": NAME,
            "namespace": "{{ .Release.Namespace }}",
            "labels": LABELS,
        },
        "spec": rules,
    }


def _if_served(api_version: str, manifest: dict[str, Any]) -> str:
    """A template that is empty on a cluster without the API."""
    condition = f'{{{{- if .Capabilities.APIVersions.Has "{api_version}" }}}}'
    return f"{condition}\n{_yaml(manifest)}{{{{- end }}}}\n"


def _kept_crd() -> dict[str, Any]:
    """The definition as a template, since Helm never upgrades what lies in a chart's crds/.

    It stays when the release is uninstalled: every TrainingJob would go with it.
    """
    definition = crd()
    definition["metadata"]["annotations"] = {"helm.sh/resource-policy": "keep"}
    return definition


def _yaml(*documents: dict[str, Any], flow: bool | None = False) -> str:
    """Documents in block style; with `flow` None their innermost lists and maps take one line."""
    text: str = yaml.dump_all(
        documents, Dumper=_PlainDumper, sort_keys=False, width=100, default_flow_style=flow
    )
    return text


class _PlainDumper(yaml.SafeDumper):
    """Writes what occurs twice twice: anchors are no friends of readers."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002  yaml's own signature
        return True
