"""Where ledgers are kept: a ConfigMap per job in the operator's own namespace.

Without owner reference: a job's deletion while the operator is down would take its money along.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from kopeck.api.errors import LedgerError, first_wrong_field
from kopeck.api.job_key import JobKey
from kopeck.api.timestamps import format_timestamp, parse_timestamp
from kopeck.cost.charging import HeldPod, observe
from kopeck.cost.ledger import Ledger
from kopeck.kube.cluster import Cluster
from kopeck.kube.errors import AlreadyExistsError, ConflictError, NotFoundError
from kopeck.pricing.book import PriceBook

_log = logging.getLogger("kopeck.ledgers")

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
    is_current: bool = True
    """False where another writer was first: to be read again."""


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

        Raises ApiError if it cannot be written: then nothing else may be. Raises LedgerError if
        it is damaged: it is left as it is, and nothing is charged until somebody mends it.
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
        """Close and price what jobs held that were deleted, as far as no operator has done it.

        A damaged ledger is told and left: it must not keep others waiting.
        """
        for found in await self._cluster.config_maps(self._namespace, LEDGER_LABEL):
            try:
                await self._settle(found, known_uids)
            except LedgerError as damaged:
                _log.error("%s", damaged)

    async def _settle(self, found: dict[str, Any], known_uids: set[str]) -> None:
        kept = _parse(found)
        if _uid(found) in known_uids:
            return
        key = _key(found)
        ledger = observe(kept.ledger, [], self._book.price, kept.seen_at, self._clock())
        if ledger is not kept.ledger:
            await self._write(key, replace(kept, ledger=ledger))
        self.forget(key)

    async def _read(self, key: JobKey) -> _Kept:
        known = self._kept.get(key.uid)
        if known is None or not known.is_current:
            found = await self._cluster.config_map(self._namespace, _name(key))
            known = self._kept[key.uid] = _parse(found) if found else _unwritten(known)
        return known

    async def _write(self, key: JobKey, kept: _Kept) -> None:
        try:
            written = await self._write_over(key, kept)
        except (ConflictError, AlreadyExistsError):
            # Ours after a lost answer, or another operator's: the next pass reads it again.
            known = self._kept.get(key.uid, _unwritten(None))
            self._kept[key.uid] = replace(known, is_current=False)
            raise
        self._kept[key.uid] = _parse(written)

    async def _write_over(self, key: JobKey, kept: _Kept) -> dict[str, Any]:
        """What is stored now; made again where somebody deleted it, since all of it is here."""
        try:
            return await self._cluster.write_config_map(self._manifest(key, kept))
        except NotFoundError:
            where = f"{self._namespace}/{_name(key)}"
            _log.warning("job=%s ConfigMap %s was deleted, its ledger is made again", key, where)
        await self._cluster.ensure_namespace(self._namespace)
        return await self._cluster.write_config_map(self._manifest(key, _unwritten(kept)))

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


def _uid(config_map: dict[str, Any]) -> str:
    name: str = config_map["metadata"]["name"]
    return name.removeprefix(_NAME_PREFIX)


def _key(config_map: dict[str, Any]) -> JobKey:
    """The job of a ledger. Raises LedgerError."""
    namespace, _, name = _annotation(config_map, _JOB).partition("/")
    return JobKey(namespace, name, _uid(config_map))


def _unwritten(known: _Kept | None) -> _Kept:
    """A ledger that is not stored: empty, or what is remembered of it."""
    return replace(known or _Kept(Ledger(), None, None), resource_version=None, is_current=True)


def _parse(config_map: dict[str, Any]) -> _Kept:
    """Raises LedgerError."""
    text = (config_map.get("data") or {}).get(_DATA_KEY)
    if text is None:
        raise _damage(config_map, f"data[{_DATA_KEY!r}] is missing")
    try:
        ledger = Ledger.model_validate_json(text)
    except ValidationError as error:
        field, wrong = first_wrong_field(error)
        entry = f", {field}" if field else ""
        raise _damage(config_map, f"data[{_DATA_KEY!r}]{entry}: {wrong}") from None
    seen_at = _annotation(config_map, _SEEN_AT)
    try:
        return _Kept(ledger, config_map["metadata"]["resourceVersion"], parse_timestamp(seen_at))
    except ValueError:
        raise _damage(config_map, f"annotation {_SEEN_AT} is no time: {seen_at!r}") from None


def _annotation(config_map: dict[str, Any], name: str) -> str:
    annotations: dict[str, str] = config_map["metadata"].get("annotations") or {}
    if name not in annotations:
        raise _damage(config_map, f"annotation {name} is missing")
    return annotations[name]


def _damage(config_map: dict[str, Any], wrong: str) -> LedgerError:
    metadata = config_map["metadata"]
    return LedgerError(
        f"ledger {metadata['namespace']}/{metadata['name']}",
        wrong,
        "put back what was there, or delete the ConfigMap to charge only pods that exist",
    )
