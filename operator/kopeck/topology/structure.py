"""The rules on which elements stand where, and how many."""

from collections.abc import Iterator

from kopeck.topology import rules
from kopeck.topology.elements import Element
from kopeck.topology.pcie import pci_kind
from kopeck.topology.rules import Finding

MAX_ELEMENTS = 255
MAX_CHILDREN = 32
_ADDED_PER_NIC = 3
_ADDED_PER_GPU = 10

_KNOWN_BELOW = {
    "system": ("cpu",),
    "cpu": ("pci", "nic"),
    "pci": ("pci", "gpu", "nic", "pcilink"),
    "gpu": ("nvlink", "c2c"),
    "nic": ("net",),
}
_DETECTED = ("gpu", "nic")


def known_elements(top: list[Element]) -> Iterator[Element]:
    """Those that NCCL loads, each before what is below it."""
    waiting = [each for each in top if each.name == "system"][:1]
    while waiting:
        element = waiting.pop()
        yield element
        known = [each for each in element.children if _is_known(each, element)]
        waiting.extend(reversed(known))


def check_structure(top: list[Element]) -> Iterator[Finding]:
    """What is wrong with the places of elements."""
    yield from _check_top(top)
    known = list(known_elements(top))
    yield from _check_room(known)
    for element in known:
        yield from _check_children(element)
        if element.name == "pci":
            yield from _check_below_pci(element)


def _is_known(child: Element, parent: Element) -> bool:
    return child.name in _KNOWN_BELOW.get(parent.name, ())


def _check_top(top: list[Element]) -> Iterator[Finding]:
    systems = [each for each in top if each.name == "system"]
    if not systems:
        line = top[0].line if top else 1
        wrong = "the file holds no system, so it says nothing"
        yield Finding(line, rules.NO_SYSTEM, wrong, 'write <system version="1">')
    for each in [each for each in top if each.name != "system"] + systems[1:]:
        wrong = f"{each.name} stands beside the first system, or before it"
        yield Finding(each.line, rules.NO_SYSTEM, wrong, "move what it holds into one system")


def _check_room(known: list[Element]) -> Iterator[Finding]:
    if len(known) > MAX_ELEMENTS:
        wrong = f"this is element {MAX_ELEMENTS + 1} of {len(known)}"
        yield Finding(known[MAX_ELEMENTS].line, rules.ELEMENTS, wrong, f"keep {MAX_ELEMENTS}")
        return
    devices = [_device_kind(each) for each in known if each.name == "pci"]
    nics, gpus = devices.count("nic"), devices.count("gpu")
    needed = len(known) + _ADDED_PER_NIC * nics + _ADDED_PER_GPU * gpus
    if needed > MAX_ELEMENTS:
        wrong = f"{len(known)} elements, {nics} NICs and {gpus} GPUs may need {needed} places"
        instead = f"leave out what no job uses, to {MAX_ELEMENTS}"
        yield Finding(known[0].line, rules.ROOM, wrong, instead)


def _device_kind(pci: Element) -> str | None:
    """A leaf without a class may be either: a GPU takes more room."""
    class_code = pci.get("class")
    if class_code is not None:
        return pci_kind(class_code)
    return "bridge" if any(pci.named("pci")) else "gpu"


def _check_children(element: Element) -> Iterator[Finding]:
    for child in element.children:
        if not _is_known(child, element):
            wrong = f"NCCL knows no {child.name} in {element.name}"
            expected = " or ".join(_KNOWN_BELOW.get(element.name, ())) or "nothing"
            instead = f"write {expected} there"
            yield Finding(child.line, rules.UNKNOWN_ELEMENT, wrong, instead)
        elif child.name in _DETECTED:
            wrong = f"{child.name} beats what NCCL finds out about the device"
            yield Finding(child.line, rules.DETECTED, wrong, "leave it out")
    if len(element.children) > MAX_CHILDREN:
        wrong = f"this is child {MAX_CHILDREN + 1} of {element.name}"
        line = element.children[MAX_CHILDREN].line
        yield Finding(line, rules.CHILDREN, wrong, f"keep {MAX_CHILDREN}, or add a bridge")


def _check_below_pci(pci: Element) -> Iterator[Finding]:
    kind = pci_kind(pci.get("class") or "")
    if kind in ("gpu", "nic") or any(pci.named("nic")):
        for child in pci.named("pci"):
            wrong = "pci below a GPU or NIC is not read"
            yield Finding(child.line, rules.BELOW_DEVICE, wrong, "move it beside its parent")
    if kind != "bridge":
        for child in pci.named("pcilink"):
            wrong = "pcilink in what is no bridge"
            yield Finding(child.line, rules.PCILINK_PLACE, wrong, "remove it")
    if pci.get("class") is not None and kind != "gpu":
        for child in pci.named("gpu"):
            wrong = f'gpu in a pci of class "{pci.get("class")}" is read as a PCI device'
            yield Finding(child.line, rules.GPU_IN_BRIDGE, wrong, 'write class="0x030200"')
