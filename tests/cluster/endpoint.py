"""The API server of a cluster, as its owner reaches it."""

import base64
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests


@dataclass(frozen=True)
class Endpoint:
    """Where it listens, who may do all there, and whose signature its certificate carries."""

    address: str
    port: int
    token: str
    authority: str

    @property
    def url(self) -> str:
        return f"https://{self.address}:{self.port}"

    def get(self, path: str) -> requests.Response | None:
        """The answer to a GET; None where nobody answers, or nobody of ours does."""
        if not Path(self.authority).exists():
            return None
        headers = {"Authorization": f"Bearer {self.token}"}
        try:
            return requests.get(self.url + path, headers=headers, verify=self.authority, timeout=10)
        except (requests.ConnectionError, requests.Timeout):
            return None

    def nodes(self) -> dict[str, bool]:
        """Whether each node is ready, by name; empty where nobody answers."""
        answer = self.get("/api/v1/nodes")
        items = answer.json()["items"] if answer is not None and answer.ok else []
        return {node["metadata"]["name"]: _is_ready(node) for node in items}

    def write_kubeconfig(self, path: Path) -> Path:
        """Write a kubeconfig for the cluster's administrator, readable by its owner only."""
        authority = base64.b64encode(Path(self.authority).read_bytes()).decode()
        cluster = {"server": self.url, "certificate-authority-data": authority}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "kopeck", "cluster": cluster}],
            "users": [{"name": "admin", "user": {"token": self.token}}],
            "contexts": [{"name": "kopeck", "context": {"cluster": "kopeck", "user": "admin"}}],
            "current-context": "kopeck",
        }
        path.touch(mode=0o600)
        path.write_text(json.dumps(config, indent=1))
        return path


def _is_ready(node: dict[str, Any]) -> bool:
    conditions = node["status"].get("conditions", [])
    return any(it["type"] == "Ready" and it["status"] == "True" for it in conditions)
