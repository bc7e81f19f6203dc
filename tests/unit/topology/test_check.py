"""Each rule is told with its line, and no file that passes stops NCCL or is half ignored by it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopeck.topology import rules
from kopeck.topology.check import check, violations
from kopeck.topology.elements import Element
from kopeck.topology.reader import read
from kopeck.topology.rules import RULES, Rule
from tests.unit.topology.files import GOOD, needs_reference_files, reference
from tests.unit.topology.nccl_reader import Abort, NcclReader, Node

_CPU = '<cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">'
_GPU = '<pci busid="0001:00:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16"/>'
_EMPTY_BRIDGE = '<pci busid="ffff:ff:02.0" class="0x060400" link_speed="8.0 GT/s PCIe"/>'


def _leaf(number: int, class_code: str) -> str:
    return f'<pci busid="00{number:02x}:00:01.0" class="{class_code}"/>'


def _bridges(count: int, leaves: int, class_code: str) -> str:
    """Bridges of some leaves each, in the place of the GPU of the good file."""
    return "".join(
        f'<pci busid="ffff:fe:{b:02x}.0" class="0x060400" link_speed="8.0 GT/s PCIe">'
        + "".join(_leaf(b * leaves + n, class_code) for n in range(leaves))
        + "</pci>"
        for b in range(count)
    )


# Rule, what of the good file is replaced, by what, and the line that is told.
_FILES: list[tuple[Rule, str, str, int]] = [
    (rules.BYTE_ORDER_MARK, "<system", "\ufeff<system", 1),
    (rules.PROLOG, "<system", '<?xml version="1.0"?>\n<system', 1),
    (rules.DOCTYPE, "<system", "<!DOCTYPE system>\n<system", 1),
    (rules.TEXT, "  <cpu", "  node\n  <cpu", 2),
    (rules.TAB, "  <cpu", "\t<cpu", 2),
    (rules.TAB, '<cpu numaid="0" ', '<cpu numaid="0"\t', 2),
    (rules.TAB, "<cpu ", "<cpu\t", 2),
    (rules.NUL, 'numaid="0"', 'numaid="0\0"', 2),
    (rules.COMMENT_WORD, "</system>", "<!--a=b -->\n</system>", 8),
    (rules.COMMENT_WORD, "</system>", f"<!--{'-' * 251} -->\n</system>", 8),
    (rules.LINE_BREAK, '<cpu numaid="0" ', '<cpu numaid="0"\n', 2),
    (rules.LINE_BREAK, '<cpu numaid="0" ', '<cpu numaid="0"\r', 2),
    (rules.NAME, _GPU, f"{_GPU}\n<{'p' * 254}/>", 5),
    (rules.NAME, _GPU, f"{_GPU}\n< pci/>", 5),
    (rules.NAME, _GPU, f"{_GPU}\n<a=b/>", 5),
    (rules.BLANK, '<cpu numaid="0" ', '<cpu numaid="0"  ', 2),
    (rules.BLANK, '"16"/>', '"16" />', 4),
    (rules.BLANK, '"143">', '"143" >', 2),
    (rules.NO_BLANK, '<cpu numaid="0" ', '<cpu numaid="0"', 2),
    (rules.NO_VALUE, 'numaid="0"', 'numaid ="0"', 2),
    (rules.NO_VALUE, 'numaid="0"', 'numaid="0" affinity', 2),
    (rules.UNQUOTED, 'numaid="0"', "numaid=0", 2),
    (rules.UNQUOTED, 'numaid="0"', 'numaid= "0"', 2),
    (rules.SINGLE_QUOTES, 'numaid="0"', "numaid='0'", 2),
    (rules.LONG_VALUE, 'version="1"', f'version="1" name="{"n" * 254}"', 1),
    (rules.SLASH, '"16"/>', '"16"/ >', 4),
    (rules.CLOSING_TAG, "</cpu>", "</cpu >", 7),
    (rules.MISMATCH, "</cpu>", "</pci>", 7),
    (rules.MISMATCH, "</system>", "</system>\n</system>", 9),
    (rules.UNTERMINATED, "</system>", "", 1),
    (rules.UNTERMINATED, "</system>", "</system", 8),
    (rules.UNTERMINATED, "</system>", "</system>\n<!-- ", 9),
    (rules.UNTERMINATED, "</system>", '</system>\n<a b="', 9),
    (rules.ELEMENTS, _GPU, "\n" + _bridges(8, 31, "0x060400"), 5),
    (rules.ROOM, _GPU, _bridges(2, 16, "0x030200"), 1),
    (rules.CHILDREN, _GPU, "\n" + "".join(_leaf(n, "0x020000") for n in range(33)), 5),
    (rules.NO_SYSTEM, GOOD, "", 1),
    (rules.NO_SYSTEM, GOOD, GOOD.upper(), 1),
    (rules.NO_SYSTEM, "</system>\n", "</system>\n<system version='1'/>", 9),
    (rules.UNKNOWN_ELEMENT, "</system>", "<switch/>\n</system>", 8),
    (rules.UNKNOWN_ELEMENT, "</system>", f"{_GPU}\n</system>", 8),
    (rules.VERSION, ' version="1"', "", 1),
    (rules.VERSION, 'version="1"', 'version="2"', 1),
    (rules.REPEATED, 'numaid="0"', 'numaid="0" numaid="1"', 2),
    (rules.UNKNOWN_ATTRIBUTE, 'numaid="0"', 'numaid="0" cores="4"', 2),
    (rules.ATTRIBUTES, "<cpu ", "<cpu " + "".join(f'a{n}="" ' for n in range(12)), 2),
    (rules.ATTRIBUTE_ROOM, "<cpu ", "<cpu " + "".join(f'a{n}="" ' for n in range(10)), 2),
    (rules.REQUIRED, ' numaid="0"', "", 2),
    (rules.REQUIRED, ' busid="0001:00:00.0"', "", 4),
    (rules.CPU_IDENTITY, ' modelid="143"', "", 2),
    (rules.CPU_IDENTITY, ' arch="x86_64"', "", 2),
    (rules.CPU_KIND, "x86_64", "x86-64", 2),
    (rules.CPU_KIND, "GenuineIntel", "Intel", 2),
    (rules.NUMBER, 'numaid="0"', 'numaid="zero"', 2),
    (rules.NUMBER, 'modelid="143"', 'modelid="0x8f"', 2),
    (rules.NUMBER, 'link_width="16"', 'link_width="x16"', 3),
    (rules.AFFINITY_MASK, 'numaid="0"', 'numaid="0" affinity="0-47"', 2),
    (rules.AFFINITY_MASK, 'numaid="0"', 'numaid="0" affinity=""', 2),
    (rules.SECOND_CPU, "</system>", f"{_CPU}</cpu>\n</system>", 8),
    (rules.BUS_ID, "0001:00:00.0", "0A01:00:00.0", 4),
    (rules.BUS_ID, "0001:00:00.0", "00000001:00:00.0", 4),
    (rules.BUS_ID, "0001:00:00.0", "01:00.0", 4),
    (rules.BUS_ID, "0001:00:00.0", "123456789:00:00.0", 4),
    (rules.SECOND_BUS_ID, "0101:00:00.0", "0001:00:00.0", 5),
    (rules.PCI_IDS, 'class="0x060400"', 'class="0x060400" vendor="10de"', 3),
    (rules.CLASS, ' class="0x060400"', "", 3),
    (rules.PCI_CLASS, "0x030200", "gpu", 4),
    (rules.BELOW_DEVICE, "0x060400", "0x020000", 4),
    (rules.GPU_IN_BRIDGE, _GPU, _EMPTY_BRIDGE.replace("/>", "><gpu/></pci>"), 4),
    (rules.PCILINK_PLACE, _GPU, _GPU.replace("/>", '><pcilink target="ffff:ff:01.0"/></pci>'), 4),
    (rules.LINK_SPEED, "32.0 GT/s PCIe", "32.0 GT/s", 3),
    (rules.LINK_SPEED, "32.0 GT/s PCIe", "64 GT/s", 3),
    (rules.LINK_SPEED, "32.0 GT/s PCIe", "", 3),
    (rules.LINK_SPEED, ' link_speed="32.0 GT/s PCIe"', "", 3),
    (rules.LINK_WIDTH, 'link_width="16"', 'link_width="12"', 3),
    (rules.DETECTED, 'numaid="0"', 'numaid="0" host_hash="0x1"', 2),
    (rules.DETECTED, 'numaid="0"', 'numaid="0" affinity="ffffffff"', 2),
    (rules.DETECTED, _GPU, _GPU.replace("/>", '><gpu dev="0"/></pci>'), 4),
]


def test_a_good_file_has_nothing_to_tell() -> None:
    assert check(GOOD.encode()) == []


def test_line_breaks_of_windows_and_comments_are_read() -> None:
    assert check(f"<!-- a machine = b -->\n{GOOD}".replace("\n", "\r\n").encode()) == []


@pytest.mark.parametrize(
    ("rule", "old", "new", "line"),
    _FILES,
    ids=[f"{rule.name}-{number}" for number, (rule, *_) in enumerate(_FILES)],
)
def test_what_breaks_a_rule_is_told_with_its_line(
    rule: Rule, old: str, new: str, line: int
) -> None:
    assert old in GOOD
    found = check(GOOD.replace(old, new, 1).encode())
    assert (line, rule) in [(each.line, each.rule) for each in found]
    assert all(each.wrong and each.instead for each in found)


def test_every_rule_has_a_file_that_breaks_it() -> None:
    assert {rule.name for rule, *_ in _FILES} == {rule.name for rule in RULES}


def test_many_things_wrong_are_told_at_once() -> None:
    content = GOOD.replace("  <cpu", "\t<cpu").replace('"0x030200"', "'0x030200'")
    found = [each.rule for each in check(content.replace("32.0 GT/s PCIe", "32.0 GT/s").encode())]
    assert {rules.TAB, rules.SINGLE_QUOTES, rules.LINK_SPEED} <= set(found)


@needs_reference_files
@pytest.mark.parametrize(
    "name", ["aws_p4d.xml", "azure_ndv4.xml", "azure_ndv5.xml", "h200x2_dump.xml"]
)
def test_the_reference_files_break_no_rule(name: str) -> None:
    assert violations(check(reference(name))) == []


_PIECES = st.sampled_from(
    [
        *" \t\n\r<>/=\"'!-?a0",
        "<!--",
        "-->",
        "/>",
        "</",
        "<a>",
        "<pci>",
        "</pci>",
        "</system>",
        ' ="',
    ]
)


@st.composite
def _broken_files(draw: st.DrawFn) -> bytes:
    """The good file with up to three places cut, replaced or filled in."""
    text = GOOD
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(text)))
        length = draw(st.sampled_from([0, 0, 1, 1, 2, 5, 30]))
        text = text[:at] + draw(st.one_of(st.just(""), _PIECES)) + text[at + length :]
    return text.encode()


def _loaded(element: Element) -> Node:
    kind = "open" if element.children else "single"
    attributes = [(each.name, each.value) for each in element.attributes]
    return Node(element.name, kind, attributes, [_loaded(child) for child in element.children])


def _same(node: Node, other: Node) -> bool:
    return (node.name, node.attributes) == (other.name, other.attributes) and all(
        _same(*pair) for pair in zip(node.children, other.children, strict=True)
    )


def _compare_with_nccl(content: bytes) -> None:
    found = check(content)
    try:
        nccl = NcclReader(content)
    except Abort:
        assert any(each.rule.kind == "fatal" for each in found)
        return
    if nccl.ignored or not nccl.top:
        assert violations(found)
    if not violations(found):
        (top,), _ = read(content)
        assert _same(_loaded(top), nccl.top[0])


@given(_broken_files())
def test_no_file_that_passes_stops_nccl_or_is_read_otherwise(content: bytes) -> None:
    _compare_with_nccl(content)


@given(st.lists(_PIECES, max_size=30).map(lambda pieces: "".join(pieces).encode()))
def test_no_heap_of_pieces_passes_that_stops_nccl(content: bytes) -> None:
    _compare_with_nccl(content)


@given(st.binary(max_size=60))
def test_any_bytes_are_told_about(content: bytes) -> None:
    _compare_with_nccl(content)


@pytest.mark.parametrize(("rule", "old", "new"), [each[:3] for each in _FILES])
def test_each_broken_file_is_to_nccl_what_its_rule_says(rule: Rule, old: str, new: str) -> None:
    _compare_with_nccl(GOOD.replace(old, new, 1).encode())
