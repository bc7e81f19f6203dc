"""Which GPUs of a container CUDA may use: on a machine without containers, those of a worker."""

from collections.abc import Sequence

from kopeck_exporter.device import Gpu


def visible(gpus: Sequence[Gpu], setting: str | None) -> list[Gpu]:
    """As CUDA reads CUDA_VISIBLE_DEVICES: indices, or beginnings of UUIDs; None is all.

    The first entry that names no GPU ends the list.
    """
    if setting is None:
        return list(gpus)
    found: list[Gpu] = []
    for entry in setting.split(","):
        named = [gpu for gpu in gpus if _is_named(gpu, entry.strip())]
        if len(named) != 1 or named[0] in found:
            break
        found += named
    return found


def _is_named(gpu: Gpu, entry: str) -> bool:
    if entry.isdecimal():
        return gpu.index == int(entry)
    return bool(entry) and gpu.uuid.startswith(entry)
