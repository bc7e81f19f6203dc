"""What the operator is allowed: exactly the verbs that `kopeck.kube` uses.

The one source of the chart's roles and of the example for plain kubectl.
"""

from typing import Any

from kopeck.api.names import GROUP, PLURAL

NAME = "kopeck"
LABELS = {"app.kubernetes.io/name": NAME}
_LEDGERS = "kopeck-ledgers"
_API_GROUP = "rbac.authorization.k8s.io"


def rbac_objects(namespace: str) -> list[dict[str, Any]]:
    """Service account, roles and bindings of an operator that keeps its ledgers in `namespace`.

    Names are fixed: a cluster has one operator.
    """
    subject = {"kind": "ServiceAccount", "name": NAME, "namespace": namespace}
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": NAME, "namespace": namespace, "labels": LABELS},
        "automountServiceAccountToken": False,  # the operator's pod asks for its token itself
    }
    everywhere = {"name": NAME, "labels": LABELS}
    ledgers = {"name": _LEDGERS, "namespace": namespace, "labels": LABELS}
    return [
        account,
        *_bound_role("ClusterRole", everywhere, _cluster_rules(), subject),
        *_bound_role("Role", ledgers, _ledger_rules(), subject),
    ]


def _bound_role(
    kind: str, metadata: dict[str, Any], rules: list[dict[str, Any]], subject: dict[str, str]
) -> list[dict[str, Any]]:
    api_version = f"{_API_GROUP}/v1"
    role_ref = {"apiGroup": _API_GROUP, "kind": kind, "name": metadata["name"]}
    return [
        {"apiVersion": api_version, "kind": kind, "metadata": metadata, "rules": rules},
        {
            "apiVersion": api_version,
            "kind": f"{kind}Binding",
            "metadata": metadata,
            "roleRef": role_ref,
            "subjects": [subject],
        },
    ]


def _cluster_rules() -> list[dict[str, Any]]:
    return [
        _rule(GROUP, PLURAL, "get list watch"),
        _rule(GROUP, f"{PLURAL}/status", "patch"),
        _rule(GROUP, f"{PLURAL}/finalizers", "update"),  # owner references that block deletion
        _rule("", "pods", "get list watch create patch delete deletecollection"),
        _rule("", "pods/proxy", "get"),  # /progress of the exporters
        _rule("", "services", "create patch"),
        _rule("", "configmaps", "get create"),
        _rule("", "nodes", "get list"),
        _rule("", "namespaces", "get"),
        _rule("", "events", "create"),
    ]


def _ledger_rules() -> list[dict[str, Any]]:
    return [_rule("", "configmaps", "get list create update")]


def _rule(group: str, resources: str, verbs: str) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split()}
