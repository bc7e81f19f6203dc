"""The rules of NCCL's topology reader, each with the place in NCCL's source that it comes from.

Read in NCCL 2.30; versions since 2.18 differ where a rule says so, and the strictest counts.
"""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["fatal", "ignored", "advice"]
"""Fatal: the communicator is not created. Ignored: NCCL drops what is written, or takes something
else for it, and says so at most in its debug log. Advice: the file works as written, and what is
written beats what NCCL would have found out."""


@dataclass(frozen=True)
class Rule:
    """One rule: what the file has to keep, and where NCCL asks for it."""

    name: str
    kind: Kind
    keeps: str
    source: str
    """File and function below src/ of NVIDIA/nccl."""


_GET_NODE = "graph/xml.cc xmlGetNode"
_GET_TOKEN = "graph/xml.cc xmlGetToken"  # noqa: S105  no password
_GET_VALUE = "graph/xml.cc xmlGetValue"
_LOAD_SUB = "graph/xml.cc xmlLoadSub"
_SET_ATTR = "graph/xml.h xmlSetAttr"
_ADD_PCI = "graph/topo.cc ncclTopoAddPci"
_ADD_CPU = "graph/topo.cc ncclTopoAddCpu"

BYTE_ORDER_MARK = Rule("byte-order-mark", "fatal", "no byte order mark", _GET_NODE)
PROLOG = Rule("prolog", "fatal", "no `<?…?>`", _GET_NODE)
DOCTYPE = Rule("doctype", "fatal", "no `<!…>` but comments", _LOAD_SUB)
TEXT = Rule("text", "fatal", "nothing but blanks and line breaks between tags", _GET_NODE)
TAB = Rule("tab", "fatal", "no tab, neither between tags nor inside one", _GET_NODE)
NUL = Rule(
    "nul", "ignored", "no zero byte: it ends what NCCL compares", "graph/xml.h xmlGetAttrIndex"
)
COMMENT_WORD = Rule(
    "comment-word",
    "fatal",
    "a comment's first word, which is read as a tag's name, has no `=` and under 254 characters",
    _GET_TOKEN,
)
LINE_BREAK = Rule("line-break", "fatal", "no line break inside a tag", _GET_NODE)
NAME = Rule("name", "fatal", "names of tags and attributes have 1 to 253 characters", _GET_TOKEN)
BLANK = Rule(
    "blank",
    "ignored",
    "one blank before each attribute and none before `>` or `/>`: each other one takes a slot",
    _GET_NODE,
)
NO_BLANK = Rule("no-blank", "fatal", "a blank before each attribute", _GET_NODE)
NO_VALUE = Rule(
    "no-value", "ignored", "each attribute has a value, `=` right behind it", _GET_TOKEN
)
UNQUOTED = Rule(
    "unquoted", "fatal", "each value stands in double quotes, right behind `=`", _GET_VALUE
)
SINGLE_QUOTES = Rule(
    "single-quotes", "fatal", "no single quotes: NCCL reads them since 2.27 only", _GET_VALUE
)
LONG_VALUE = Rule("long-value", "fatal", "values have at most 253 bytes", _GET_VALUE)
SLASH = Rule("slash", "fatal", "nothing between `/` and `>`", _GET_NODE)
CLOSING_TAG = Rule("closing-tag", "fatal", "a closing tag holds its name only", _GET_NODE)
MISMATCH = Rule("mismatch", "fatal", "each closing tag has the name of the open one", _LOAD_SUB)
UNTERMINATED = Rule(
    "unterminated", "fatal", "all tags, comments, values and elements end", _LOAD_SUB
)
ELEMENTS = Rule("elements", "fatal", "at most 255 elements", _LOAD_SUB)
ROOM = Rule(
    "room",
    "fatal",
    "elements + 3 × NICs + 10 × GPUs ≤ 255: what NCCL adds shares the 256 places",
    "graph/xml.h xmlAddNode",
)
CHILDREN = Rule("children", "fatal", "at most 32 children of an element (2.18 to 2.20)", _LOAD_SUB)
NO_SYSTEM = Rule("no-system", "ignored", "one `system` holds all else", _LOAD_SUB)
UNKNOWN_ELEMENT = Rule(
    "unknown-element", "ignored", "only elements that NCCL knows in that place", _LOAD_SUB
)
VERSION = Rule(
    "version", "fatal", '`system` has `version="1"`', "graph/xml.cc ncclTopoXmlLoadSystem"
)
REPEATED = Rule(
    "repeated-attribute",
    "ignored",
    "no attribute twice: the first wins",
    "graph/xml.h xmlGetAttrIndex",
)
UNKNOWN_ATTRIBUTE = Rule(
    "unknown-attribute", "ignored", "only attributes that NCCL reads", "graph/xml.h xmlGetAttrIndex"
)
ATTRIBUTES = Rule("attributes", "ignored", "at most 16 attributes: the rest is dropped", _GET_NODE)
ATTRIBUTE_ROOM = Rule(
    "attribute-room",
    "fatal",
    "with those that NCCL adds at most 16 attributes: it writes on without a check",
    _SET_ATTR,
)
REQUIRED = Rule(
    "required",
    "fatal",
    "`cpu` has numaid, `pci` busid, `nvlink` count and tclass, `c2c` count and bw, `pcilink` "
    "target",
    "graph/topo.cc ncclTopoAddCpu, ncclTopoAddPci, ncclTopoAddNvLinks, ncclTopoAddC2c, "
    "ncclTopoAddPciLinks",
)
CPU_IDENTITY = Rule(
    "cpu-identity",
    "fatal",
    "`cpu` has all of arch, vendor, familyid, modelid, or none: NCCL fills in only some",
    f"{_ADD_CPU}; graph/xml.cc ncclTopoGetXmlFromCpu",
)
CPU_KIND = Rule("cpu-kind", "ignored", "arch and vendor are ones that NCCL knows", _ADD_CPU)
NUMBER = Rule(
    "number",
    "ignored",
    "numaid, familyid, modelid and link_width are whole decimal numbers",
    "graph/xml.h xmlGetAttrInt",
)
AFFINITY_MASK = Rule(
    "affinity-mask",
    "ignored",
    "affinity is a mask such as 000000ff,ffff0000",
    "include/cpuset.h ncclStrToCpuset",
)
SECOND_CPU = Rule(
    "second-cpu", "ignored", "each numaid once: NCCL finds the first", "graph/xml.h xmlGetSubKv"
)
BUS_ID = Rule(
    "bus-id",
    "ignored",
    "busid is `dddd:bb:dd.f` in lower case, no leading zero beyond four digits of domain: it is "
    "compared as text",
    "graph/xml.h xmlFindTagKv; misc/utils.cc int64ToBusId",
)
SECOND_BUS_ID = Rule(
    "second-bus-id", "ignored", "each busid once: NCCL finds the first", "graph/xml.h xmlFindTagKv"
)
PCI_IDS = Rule(
    "pci-ids",
    "ignored",
    "vendor, device, subsystem_vendor and subsystem_device are written as 0x10de",
    "graph/topo.cc ncclTopoGetIntDevice",
)
CLASS = Rule("class", "fatal", "a bridge has `class`: no machine can tell it", _ADD_PCI)
PCI_CLASS = Rule(
    "pci-class",
    "ignored",
    "class is 0x060400 (bridge) or begins with 0x03 (GPU) or 0x02 (NIC); any other is a bridge",
    f"{_ADD_PCI} (kvDictPciClass)",
)
BELOW_DEVICE = Rule("below-device", "ignored", "no `pci` below a GPU or a NIC", _ADD_PCI)
GPU_IN_BRIDGE = Rule("gpu-in-bridge", "fatal", "a `pci` with a `gpu` has a class of 0x03", _ADD_PCI)
PCILINK_PLACE = Rule(
    "pcilink-place",
    "fatal",
    "a `pci` with a `pcilink` is a bridge",
    "graph/topo.cc ncclTopoAddPciLinks",
)
LINK_SPEED = Rule(
    "link-speed",
    "ignored",
    "a bridge has link_speed, and each is in NCCL's table; any other counts as 8 GT/s",
    f"{_ADD_PCI} (kvDictPciGen)",
)
LINK_WIDTH = Rule(
    "link-width", "ignored", "link_width is 1, 2, 4, 8, 16 or 32, or 0 for 16", _ADD_PCI
)
DETECTED = Rule(
    "detected",
    "advice",
    "no `gpu`, `nic`, host_hash or affinity: they beat what NCCL finds",
    "graph/xml.cc ncclTopoFillGpu, ncclTopoGetXmlFromCpu; graph/topo.cc ncclTopoGetSystem",
)

RULES: tuple[Rule, ...] = tuple(each for each in list(globals().values()) if isinstance(each, Rule))


@dataclass(frozen=True)
class Finding:
    """One place where a file does not keep a rule."""

    line: int
    """From 1."""
    rule: Rule
    wrong: str
    instead: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.wrong}; {self.instead}"
