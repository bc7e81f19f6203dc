"""Whether the file that NCCL_TOPO_FILE names can help.

NCCL stops at a broken one, and ignores that of another machine without a word.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from kopeck.topology.check import check
from kopeck.topology.elements import Element
from kopeck.topology.reader import read
from kopeck_trainer.errors import ConfigurationError
from kopeck_trainer.nccl.conf_files import variables_of_files

TOPO_FILE = "NCCL_TOPO_FILE"
KOPECKS_FOLDER = "/etc/kopeck/"
"""Where the operator mounts a file of its own."""
VIRTUAL_TOPOLOGY = "var/run/nvidia-topologyd/virtualTopology.xml"

_NUMA_UNKNOWN = -1


def why_unusable(file: str, gpus: Sequence[str], root: Path) -> str | None:
    """Why NCCL does better without the file, None if it is right for these GPUs.

    `gpus` are bus ids as NCCL writes them: it compares text, so capitals never match. Raises
    ConfigurationError where NCCL would stop at the file: no rank could start with it.
    """
    if file.startswith(KOPECKS_FOLDER) and (root / VIRTUAL_TOPOLOGY).exists():
        return f"this machine brings its own in /{VIRTUAL_TOPOLOGY}"
    try:
        content = Path(file).read_bytes()
    except OSError as error:
        return f"it cannot be read ({error.strerror})"
    _refuse_broken(file, content)
    described = _numa_by_bus_id(content)
    if missing := [gpu for gpu in gpus if gpu not in described]:
        return f"it does not describe {len(missing)} of {len(gpus)} GPUs, the first at {missing[0]}"
    return None


def numa_nodes_of_file(environ: Mapping[str, str], root: Path) -> dict[str, int]:
    """NUMA node by bus id, by the file that NCCL will read; -1 where it does not know."""
    file = environ.get(TOPO_FILE, variables_of_files(environ, root).get(TOPO_FILE))
    try:
        return _numa_by_bus_id(Path(file).read_bytes()) if file else {}
    except OSError:
        return {}


def _refuse_broken(file: str, content: bytes) -> None:
    fatal = [each for each in check(content) if each.rule.kind == "fatal"]
    if fatal:
        first = fatal[0]
        where = f"{file}, line {first.line}"
        raise ConfigurationError(TOPO_FILE, f"NCCL stops at {where}: {first.wrong}", first.instead)


def _numa_by_bus_id(content: bytes) -> dict[str, int]:
    """Of all devices and switches that NCCL loads; the first of a bus id counts."""
    top, _ = read(content)
    systems = [each for each in top if each.name == "system"][:1]
    found: dict[str, int] = {}
    for cpu in (cpu for system in systems for cpu in system.named("cpu")):
        for bus_id in _bus_ids_below(cpu):
            found.setdefault(bus_id, _numa_id(cpu))
    return found


def _bus_ids_below(element: Element) -> Iterator[str]:
    for pci in element.named("pci"):
        yield pci.get("busid") or ""
        yield from _bus_ids_below(pci)


def _numa_id(cpu: Element) -> int:
    numa_id = cpu.get("numaid") or ""
    return int(numa_id) if numa_id.isdecimal() else _NUMA_UNKNOWN
