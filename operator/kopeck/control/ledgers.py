"""Where ledgers are kept: a ConfigMap per job in the operator's own namespace.

Without owner reference: a job's deletion while the operator is down would take its money along.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from kopeck.api.job_key import JobKey
from kopeck.api.timestamps import format_timestamp, parse_timestamp
from kopeck.cost.charging import HeldPod, observe
from kopeck.cost.ledger import Ledger
from kopeck.kube.cluster import Cluster
from kopeck.kube.errors import AlreadyExistsError, ConflictError
from kopeck.pricing.book import PriceBook

_DATA_KEY = "ledger.json"
_NAME_PREFIX = "kopeck-ledger-"
_JOB = "kopeck.dev/job"
_SEEN_AT = "kopeck.dev/seen-at"
LEDGER_LABEL = "kopeck.dev/ledger"


@dataclass
class _Kept:
    ledger: Ledger
    resource_version: str | None
    seen_at: datetime | None
    """When it was written: what was open then was held until then at least."""


class Ledgers:
    """The ledgers of all jobs, read when first asked for."""

    def __init__(
        self, cluster: Cluster, namespace: str, book: PriceBook, clock: Callable[[], datetime]
    ) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._book = book
        self._clock = clock
        self._kept: dict[str, _Kept] = {}

    async def observe(
        self,
        key: JobKey,
        pods: list[HeldPod],
        last_seen: datetime | None,
        now: datetime,
    ) -> Ledger:
        """The ledger after a look at the job's pods, written first.

        Raises ApiError if it cannot be written: then nothing else may be.
        """
        kept = await self._read(key)
        evidence = [moment for moment in (last_seen, kept.seen_at) if moment is not None]
        last_known = max(evidence, default=None)
        ledger = observe(kept.ledger, pods, self._book.price, last_known, now)
        if ledger is kept.ledger:
            return ledger
        await self._write(key, replace(kept, ledger=ledger))
        return ledger

    def forget(self, key: JobKey) -> None:
        self._kept.pop(key.uid, None)

    async def settle_orphans(self, known_uids: set[str]) -> None:
        """Close and price what jobs held that were deleted, as far as no operator has done it."""
        for found in await self._cluster.config_maps(self._namespace, LEDGER_LABEL):
            key = _key(found)
            if key.uid in known_uids:
                continue
            kept = _parse(found)
            ledger = observe(kept.ledger, [], self._book.price, kept.seen_at, self._clock())
            if ledger is not kept.ledger:
                await self._write(key, replace(kept, ledger=ledger))
            self.forget(key)

    async def _read(self, key: JobKey) -> _Kept:
        if key.uid not in self._kept:
            found = await self._cluster.config_map(self._namespace, _name(key))
            self._kept[key.uid] = _parse(found)
        return self._kept[key.uid]

    async def _write(self, key: JobKey, kept: _Kept) -> None:
        try:
            written = await self._cluster.write_config_map(self._manifest(key, kept))
        except (ConflictError, AlreadyExistsError):
            # Ours after a lost answer, or another operator's: the next pass reads it again.
            self.forget(key)
            raise
        self._kept[key.uid] = _parse(written)

    def _manifest(self, key: JobKey, kept: _Kept) -> dict[str, Any]:
        metadata: dict[str, Any] = {
            "name": _name(key),
            "namespace": self._namespace,
            "labels": {LEDGER_LABEL: "true"},
            "annotations": {_JOB: str(key), _SEEN_AT: format_timestamp(self._clock())},
        }
        if kept.resource_version:
            metadata["resourceVersion"] = kept.resource_version
        text = kept.ledger.model_dump_json(by_alias=True, exclude_none=True)
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": metadata,
            "data": {_DATA_KEY: text},
        }


def _name(key: JobKey) -> str:
    return f"{_NAME_PREFIX}{key.uid}"


def _key(config_map: dict[str, Any]) -> JobKey:
    metadata = config_map["metadata"]
    namespace, name = metadata["annotations"][_JOB].split("/")
    return JobKey(namespace, name, metadata["name"].removeprefix(_NAME_PREFIX))


def _parse(config_map: dict[str, Any] | None) -> _Kept:
    if config_map is None:
        return _Kept(Ledger(), None, None)
    metadata = config_map["metadata"]
    return _Kept(
        ledger=Ledger.model_validate_json(config_map["data"][_DATA_KEY]),
        resource_version=metadata["resourceVersion"],
        seen_at=parse_timestamp(metadata["annotations"][_SEEN_AT]),
    )
