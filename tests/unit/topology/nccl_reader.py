"""NCCL's own reader, told again step by step: what a file comes to in src/graph/xml.cc of 2.30.

Written for tests alone and kept as close to the C code as Python allows, so that the rules that
`check` keeps have something to be wrong against. Children are bounded as in the strictest version.
"""

import re
from dataclasses import dataclass, field

_MAX_STRING = 255
_MAX_ATTRIBUTES = 16
_MAX_NODES = 256
_MAX_CHILDREN = 32

_HANDLERS = {
    None: ("system",),
    "system": ("cpu",),
    "cpu": ("pci", "nic"),
    "pci": ("pci", "gpu", "nic", "pcilink"),
    "gpu": ("nvlink", "c2c"),
    "nic": ("net",),
}


class Abort(Exception):  # noqa: N818  what NCCL does, no error of ours
    """NCCL does not create the communicator."""


@dataclass
class Node:
    name: str = ""
    kind: str = "none"
    attributes: list[tuple[str, str]] = field(default_factory=list)
    children: list["Node"] = field(default_factory=list)


def _begins_with_1(attributes: dict[str, str]) -> bool:
    """As strtol takes the version."""
    return bool(
        re.match(r"[ \t-\r]*\+?0*(x0*)?1(?!\d)", attributes.get("version", ""), re.IGNORECASE)
    )


class NcclReader:
    """`top` holds what is loaded, `ignored` what is not."""

    def __init__(self, content: bytes) -> None:
        self._text = content.decode("latin-1")
        self._at = 0
        self._nodes = 0
        self.top: list[Node] = []
        self.ignored: list[str] = []
        self._load_below(None, _HANDLERS[None])

    def _char(self) -> str:
        if self._at >= len(self._text):
            raise Abort("unexpected end")
        self._at += 1
        return self._text[self._at - 1]

    def _value(self) -> tuple[str, str]:
        quote = self._char()
        if quote not in "\"'":
            raise Abort("expected quote")
        value = ""
        while True:
            char = self._char()
            if len(value) == _MAX_STRING - 1:
                raise Abort("value too long")
            if char == quote:
                return value, self._char()
            value += char

    def _token(self, *, has_value: bool) -> tuple[str, str, str]:
        """Name, value, last character."""
        name = ""
        while True:
            char = self._char()
            if char == "=":
                if not has_value:
                    raise Abort("unexpected value")
                return name, *self._value()
            if len(name) == _MAX_STRING - 1:
                raise Abort("name too long")
            if char in " >/\n\r":
                return name, "", char
            name += char

    def _skip_comment(self, start: str, char: str) -> None:
        end = ("..." + start + char)[-3:]
        while end != "-->":
            end = end[1:] + self._char()

    def _node(self) -> Node:
        while True:
            char = " "
            while char in " \n\r":
                if self._at >= len(self._text):
                    return Node()
                char = self._char()
            if char != "<":
                raise Abort("expecting <")
            name, _, last = self._token(has_value=False)
            if not name.startswith("!--"):
                break
            self._skip_comment(name[3:], last)
        if not name and last == "/":
            name, _, last = self._token(has_value=False)
            if last != ">":
                raise Abort("trailing in closing tag")
            return Node(name, "close")
        return self._opened(Node(name, "open"), last)

    def _opened(self, node: Node, last: str) -> Node:
        while last == " ":
            key, value, last = self._token(has_value=True)
            if len(node.attributes) == _MAX_ATTRIBUTES:
                self.ignored.append(f"attribute {key}")
            else:
                node.attributes.append((key, value))
        if last == "/":
            node.kind = "single"
            _, _, last = self._token(has_value=False)
        if last != ">":
            raise Abort("expected >")
        return node

    def _load_below(self, head: Node | None, handlers: tuple[str, ...]) -> None:
        if head and head.kind == "single":
            return
        while True:
            if self._nodes == _MAX_NODES:
                raise Abort("too many nodes")
            node = self._node()
            if node.kind == "none":
                if head:
                    raise Abort("unterminated")
                return
            if head and node.kind == "close":
                if node.name != head.name:
                    raise Abort("mismatch")
                return
            self._load(node, head, handlers)

    def _load(self, node: Node, head: Node | None, handlers: tuple[str, ...]) -> None:
        if node.name not in handlers:
            self.ignored.append(node.name)
            self._skip_below(node)
            return
        siblings = head.children if head else self.top
        if head and len(siblings) == _MAX_CHILDREN:
            raise Abort("too many children")
        siblings.append(node)
        self._nodes += 1
        if node.name == "system" and not _begins_with_1(dict(reversed(node.attributes))):
            raise Abort("version")
        self._load_below(node, _HANDLERS.get(node.name, ()))

    def _skip_below(self, node: Node) -> None:
        """An ignored element shares its slot with what is below it: no names are compared."""
        depth = 0 if node.kind == "single" else 1
        while depth:
            inner = self._node()
            if inner.kind == "none":
                raise Abort("unterminated")
            depth += {"open": 1, "close": -1, "single": 0}[inner.kind]
