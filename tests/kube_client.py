"""The API server as tests see it: JSON over HTTP, none of kopeck's own code in between."""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import requests
import yaml

MERGE_PATCH = "application/merge-patch+json"


class KubeClient:
    """Reads and writes objects with the credentials of a kubeconfig."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.url: str = cluster["server"]
        self._session = requests.Session()
        # Otherwise a certificate bundle of the environment wins over the cluster's own.
        self._session.trust_env = False
        self._session.verify = _certificate(kubeconfig, cluster)
        self._session.headers["Authorization"] = f"Bearer {user['token']}"

    def request(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> requests.Response:
        return self._session.request(
            method,
            self.url + path,
            json=body,
            headers={"Content-Type": content_type},
            timeout=60,
        )

    def get(self, path: str) -> Any:
        """The object, or None if there is none."""
        response = self.request("GET", path)
        return None if response.status_code == 404 else _answer(response)

    def list(self, path: str, selector: str = "") -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self.get(f"{path}?labelSelector={selector}")["items"]
        return items

    def create(self, path: str, manifest: Mapping[str, Any]) -> dict[str, Any]:
        created: dict[str, Any] = _answer(self.request("POST", path, manifest))
        return created

    def patch(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        patched: dict[str, Any] = _answer(self.request("PATCH", path, body, MERGE_PATCH))
        return patched

    def delete(self, path: str, grace_seconds: int | None = None) -> None:
        body = None if grace_seconds is None else {"gracePeriodSeconds": grace_seconds}
        response = self.request("DELETE", path, body)
        if response.status_code != 404:
            _answer(response)


def _certificate(kubeconfig: Path, cluster: Mapping[str, Any]) -> str | bool:
    if "certificate-authority" in cluster:
        return str(kubeconfig.parent / cluster["certificate-authority"])
    if "certificate-authority-data" in cluster:
        file = kubeconfig.parent / "ca-of-tests.crt"
        file.write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
        return str(file)
    return False


def _answer(response: requests.Response) -> Any:
    assert response.status_code < 400, f"{response.status_code}: {response.text}"
    return response.json()
