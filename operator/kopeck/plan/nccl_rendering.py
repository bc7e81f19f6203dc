"""How what was decided for NCCL becomes part of a pod; the user's own values win."""

from collections.abc import Mapping
from typing import Any

from kopeck.api.status import EffectiveNccl
from kopeck.topology.environment import CONF_FILE

_VOLUME = "kopeck-nccl"


def nccl_environment(nccl: EffectiveNccl | None, own: Mapping[str, str]) -> list[dict[str, str]]:
    """The variables of the training container; `own` is what the user tells NCCL."""
    values = {**(nccl.environment if nccl else {}), **own}
    return [{"name": name, "value": value} for name, value in sorted(values.items())]


def nccl_mounts(nccl: EffectiveNccl | None) -> list[dict[str, Any]]:
    """The mount of the provider's file, at the one path where NCCL looks for it."""
    if nccl is None or "nccl.conf" not in nccl.files:
        return []
    return [{"name": _VOLUME, "mountPath": CONF_FILE, "subPath": "nccl.conf", "readOnly": True}]


def nccl_volumes(nccl: EffectiveNccl | None) -> list[dict[str, Any]]:
    if nccl is None or "nccl.conf" not in nccl.files:
        return []
    items = [{"key": "nccl.conf", "path": "nccl.conf"}]
    return [{"name": _VOLUME, "configMap": {"name": nccl.config_map, "items": items}}]


def config_volume(config: str, nccl: EffectiveNccl | None) -> dict[str, Any]:
    """The volume of kopeck's folder: the revision, and the topology file beside it.

    One volume of both: nothing can be mounted into a folder that is mounted read-only.
    """
    if nccl is None or "topology.xml" not in nccl.files:
        return {"configMap": {"name": config}}
    items = [{"key": "topology.xml", "path": "topology.xml"}]
    sources = [
        {"configMap": {"name": config}},
        {"configMap": {"name": nccl.config_map, "items": items}},
    ]
    return {"projected": {"sources": sources}}
