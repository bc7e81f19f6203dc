"""The rules on what attributes say."""

import re
from collections import Counter
from collections.abc import Callable, Iterator

from kopeck.topology import rules
from kopeck.topology.elements import Element
from kopeck.topology.pcie import KNOWN_WIDTHS, VIRTUAL_BUS, gigatransfers, pci_kind
from kopeck.topology.rules import Finding, Rule
from kopeck.topology.structure import known_elements

MAX_ATTRIBUTES = 16

_IDENTITY = ("arch", "vendor", "familyid", "modelid")
_PCI_IDS = ("vendor", "device", "subsystem_vendor", "subsystem_device")
_READ = {
    "system": ("version", "name"),
    "cpu": ("numaid", "affinity", *_IDENTITY, "host_hash"),
    "pci": ("busid", "class", "link_speed", "link_width", *_PCI_IDS),
    "gpu": ("dev", "sm", "rank", "gdr", "mlopart", "keep"),
    "nvlink": ("target", "count", "tclass"),
    "c2c": ("bw", "count"),
    "nic": (),
    "net": (
        *("name", "dev", "latency", "speed", "port", "rail", "plane", "guid", "maxconn", "gdr"),
        *("net", "coll", "gin", "rma", "keep"),
    ),
    "pcilink": ("target",),
}
_REQUIRED = {
    "cpu": ("numaid",),
    "pci": ("busid",),
    "nvlink": ("count", "tclass"),
    "c2c": ("count", "bw"),
    "pcilink": ("target",),
}
_EXAMPLES = {"numaid": "0", "busid": "0001:00:00.0", "tclass": "0x068000", "target": "0001:00:00.0"}
_ARCHS_BY_NAME_ALONE = ("arm64", "ppc64")
_ARCHS = ("x86_64", *_ARCHS_BY_NAME_ALONE)
_VENDORS = ("GenuineIntel", "AuthenticAMD", "CentaurHauls", "  Shanghai  ")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,8}")
_NUMA_ID = re.compile(r"-1|0|[1-9][0-9]{0,8}")
_MASK = re.compile(r"[0-9a-fA-F]{1,8}(,[0-9a-fA-F]{1,8}){0,31}")
_PCI_ID = re.compile(r"0x[0-9a-fA-F]{1,4}")
_BUS_ID = re.compile(r"([1-9a-f][0-9a-f]{0,3})?[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]")


def check_attributes(top: list[Element]) -> Iterator[Finding]:
    """What is wrong with the attributes of the elements that NCCL loads."""
    known = list(known_elements(top))
    for element in known:
        yield from _check_names(element)
        yield from _check_required(element)
        yield from _CHECKS.get(element.name, _nothing)(element)
    cpus = [each for each in known if each.name == "cpu"]
    yield from _check_unique(cpus, "numaid", rules.SECOND_CPU)
    pcis = [each for each in known if each.name == "pci"]
    yield from _check_unique(pcis, "busid", rules.SECOND_BUS_ID)


def _nothing(_: Element) -> Iterator[Finding]:
    yield from ()


def _check_names(element: Element) -> Iterator[Finding]:
    names = Counter(each.name for each in element.attributes)
    for name, times in names.items():
        if times > 1:
            wrong = f"{name} stands {times} times in {element.name}"
            yield Finding(element.line, rules.REPEATED, wrong, "keep the first")
        if name not in _READ[element.name]:
            wrong = f"NCCL reads no {name or 'attribute without a name'} of {element.name}"
            yield Finding(element.line, rules.UNKNOWN_ATTRIBUTE, wrong, "remove it")
    if element.slots > MAX_ATTRIBUTES:
        wrong = f"{element.name} takes {element.slots} slots of attributes"
        yield Finding(element.line, rules.ATTRIBUTES, wrong, f"keep {MAX_ATTRIBUTES}")
    missing = len(set(_READ[element.name]) - set(names))
    if element.slots + missing > MAX_ATTRIBUTES:
        wrong = f"{element.name} takes {element.slots} slots, and NCCL may add {missing} attributes"
        instead = f"write at most {MAX_ATTRIBUTES - missing}"
        yield Finding(element.line, rules.ATTRIBUTE_ROOM, wrong, instead)


def _check_required(element: Element) -> Iterator[Finding]:
    for name in _REQUIRED.get(element.name, ()):
        if element.get(name) is None:
            wrong = f"{element.name} has no {name}"
            instead = f'write {name}="{_EXAMPLES.get(name, "1")}" or what is true'
            yield Finding(element.line, rules.REQUIRED, wrong, instead)


def _check_unique(elements: list[Element], name: str, rule: Rule) -> Iterator[Finding]:
    lines: dict[str, int] = {}
    for each in elements:
        value = each.get(name)
        if value is None:
            continue
        if value in lines:
            wrong = f"{name} {value} stands on line {lines[value]} already"
            yield Finding(each.line, rule, wrong, "write another, or make them one")
        lines.setdefault(value, each.line)


def _check_system(system: Element) -> Iterator[Finding]:
    version = system.get("version")
    if version != "1":
        wrong = "system has no version" if version is None else f'system has version "{version}"'
        yield Finding(system.line, rules.VERSION, wrong, 'write version="1"')


def _check_cpu(cpu: Element) -> Iterator[Finding]:
    yield from _check_identity(cpu)
    yield from _check_number(cpu, "numaid", _NUMA_ID)
    yield from _check_number(cpu, "familyid", _NUMBER)
    yield from _check_number(cpu, "modelid", _NUMBER)
    affinity = cpu.get("affinity")
    if affinity is not None and not _MASK.fullmatch(affinity):
        wrong = f'affinity "{affinity}" is no mask of CPUs'
        yield Finding(cpu.line, rules.AFFINITY_MASK, wrong, "leave it out: NCCL asks the system")
    for name in ("affinity", "host_hash"):
        if cpu.get(name) is not None:
            wrong = f"{name} beats what NCCL finds out about the machine"
            yield Finding(cpu.line, rules.DETECTED, wrong, "leave it out")


def _check_identity(cpu: Element) -> Iterator[Finding]:
    arch, vendor = cpu.get("arch"), cpu.get("vendor")
    missing = [name for name in _IDENTITY if cpu.get(name) is None]
    if arch not in _ARCHS_BY_NAME_ALONE and 0 < len(missing) < len(_IDENTITY):
        wrong = f"cpu has some of {', '.join(_IDENTITY)}, but no {' or '.join(missing)}"
        yield Finding(cpu.line, rules.CPU_IDENTITY, wrong, "write all of them, or none")
    if arch is not None and not arch.startswith(_ARCHS):
        wrong = f'NCCL knows no arch "{arch}"'
        yield Finding(cpu.line, rules.CPU_KIND, wrong, f"write one of {', '.join(_ARCHS)}")
    if vendor is not None and arch == "x86_64" and not vendor.startswith(_VENDORS):
        wrong = f'NCCL knows no vendor "{vendor}"'
        yield Finding(cpu.line, rules.CPU_KIND, wrong, "write GenuineIntel or AuthenticAMD")


def _check_number(element: Element, name: str, number: re.Pattern[str]) -> Iterator[Finding]:
    value = element.get(name)
    if value is not None and not number.fullmatch(value):
        wrong = f'{name} "{value}" is no whole decimal number'
        yield Finding(element.line, rules.NUMBER, wrong, f'write one such as {name}="0"')


def _check_pci(pci: Element) -> Iterator[Finding]:
    bus_id = pci.get("busid")
    if bus_id is not None and not _BUS_ID.fullmatch(bus_id):
        wrong = f'busid "{bus_id}" is not how NCCL writes one'
        instead = "write it as 0001:00:00.0, in lower case"
        yield Finding(pci.line, rules.BUS_ID, wrong, instead)
    for name in _PCI_IDS:
        value = pci.get(name)
        if value is not None and not _PCI_ID.fullmatch(value):
            wrong = f'{name} "{value}" is no PCI id'
            yield Finding(pci.line, rules.PCI_IDS, wrong, "write it as 0x10de, or leave it out")
    yield from _check_class(pci)
    yield from _check_link(pci)


def _is_bridge(pci: Element) -> bool:
    """Also what has to be one, whatever its class says."""
    is_virtual = (pci.get("busid") or "").startswith(VIRTUAL_BUS)
    return is_virtual or any(pci.named("pci")) or pci_kind(pci.get("class") or "") == "bridge"


def _check_class(pci: Element) -> Iterator[Finding]:
    class_code = pci.get("class")
    if class_code is None:
        if _is_bridge(pci):
            wrong = f"bridge {pci.get('busid')} has no class"
            yield Finding(pci.line, rules.CLASS, wrong, 'write class="0x060400"')
    elif pci_kind(class_code) is None:
        wrong = f'NCCL knows no class "{class_code}" and takes it for a bridge'
        instead = "write 0x060400 (bridge), 0x030200 (GPU) or 0x020000 (NIC)"
        yield Finding(pci.line, rules.PCI_CLASS, wrong, instead)


def _check_link(pci: Element) -> Iterator[Finding]:
    speed, width = pci.get("link_speed"), pci.get("link_width")
    if speed is None and _is_bridge(pci):
        wrong = f"bridge {pci.get('busid')} has no link_speed and counts as 8 GT/s"
        yield Finding(pci.line, rules.LINK_SPEED, wrong, 'write it as in "32.0 GT/s PCIe"')
    if speed is not None and gigatransfers(speed) is None:
        wrong = f'NCCL knows no link_speed "{speed}" and takes it for 8 GT/s'
        yield Finding(pci.line, rules.LINK_SPEED, wrong, 'write it as in "32.0 GT/s PCIe"')
    if width is None:
        return
    if not _NUMBER.fullmatch(width):
        yield from _check_number(pci, "link_width", _NUMBER)
    elif int(width) not in (0, *KNOWN_WIDTHS):
        wrong = f"no link has {width} lanes"
        yield Finding(pci.line, rules.LINK_WIDTH, wrong, "write 1, 2, 4, 8, 16 or 32")


_CHECKS: dict[str, Callable[[Element], Iterator[Finding]]] = {
    "system": _check_system,
    "cpu": _check_cpu,
    "pci": _check_pci,
}
