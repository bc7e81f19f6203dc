"""Watching jobs to their end, without asking again and again: that would slow what is measured."""

import json
from collections.abc import Iterator
from typing import Any

from tests.kube_client import KubeClient

_SECONDS = 900


class WatchingClient(KubeClient):
    """A client that can also wait for the API server to speak."""

    def watch(self, path: str, field_selector: str) -> Iterator[dict[str, Any]]:
        """The objects as they come to match the selector, and at each change after it."""
        query = {"watch": "1", "timeoutSeconds": str(_SECONDS), "fieldSelector": field_selector}
        with self._session.get(
            self.url + path, params=query, stream=True, timeout=_SECONDS
        ) as answer:
            for line in answer.iter_lines():
                yield json.loads(line)["object"]
        raise AssertionError(f"{path} did not come to {field_selector} within {_SECONDS} s")


def is_settled(job: dict[str, Any]) -> bool:
    """Whether a job that ended holds nothing any more, and its status says what it cost."""
    cost = job["status"].get("cost", {})
    return "spent" in cost and "hourlyRate" not in cost
