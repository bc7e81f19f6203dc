"""Waiting until the API server serves a kind that was just defined."""

import json
from collections.abc import Callable

from tests.cluster.waiting import wait_until


def wait_until_served(kubectl: Callable[..., str], definition: str) -> None:
    """Return once a CustomResourceDefinition, by its name, is established.

    `kubectl` is that of a cluster. Raises ClusterError where it is not in time.
    """

    def is_established() -> bool:
        # `kubectl wait` would fail: at first `conditions` is null.
        found = json.loads(kubectl("get", "crd", definition, "--output=json"))
        conditions = found.get("status", {}).get("conditions") or []
        return any(it["type"] == "Established" and it["status"] == "True" for it in conditions)

    wait_until(is_established, f"{definition} to be served")
