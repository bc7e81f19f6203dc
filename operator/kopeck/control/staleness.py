"""Whether the watches still tell: fresh lists show what they should have told."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any


class Staleness:
    """By kind of object: the newest resource version listed, and the newest told by a watch."""

    def __init__(self) -> None:
        self._listed: dict[str, int] = defaultdict(int)
        self._told: dict[str, int] = defaultdict(int)

    def begin_lists(self) -> None:
        """What was listed before may be deleted by now: its watch owes it no more."""
        self._listed.clear()

    def list_showed(self, kind: str, manifests: Iterable[Mapping[str, Any]]) -> None:
        """Take in a part of a list; its watch has to tell of the newest of it too."""
        newest = max((_version(manifest) for manifest in manifests), default=0)
        self._listed[kind] = max(self._listed[kind], newest)

    def watch_told(self, kind: str, manifest: Mapping[str, Any]) -> None:
        """Take in a watch event."""
        self._told[kind] = max(self._told[kind], _version(manifest))

    def untold(self) -> list[str]:
        """The kinds whose watch owes what a list has shown."""
        return [kind for kind, listed in self._listed.items() if self._told[kind] < listed]


def _version(manifest: Mapping[str, Any]) -> int:
    return int(manifest["metadata"]["resourceVersion"])
