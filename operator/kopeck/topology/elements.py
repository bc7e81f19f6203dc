"""The elements of a topology file, each with the line that it begins on."""

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Attribute:
    """A name and its value, both as they stand in the file: NCCL decodes no entities."""

    name: str
    value: str
    line: int


@dataclass
class Element:
    """A tag, what it holds, and how many of NCCL's sixteen attribute slots it takes."""

    name: str
    line: int
    attributes: list[Attribute] = field(default_factory=list)
    children: list["Element"] = field(default_factory=list)
    slots: int = 0

    def get(self, name: str) -> str | None:
        """The first attribute of the name, as NCCL takes it."""
        return next((each.value for each in self.attributes if each.name == name), None)

    def named(self, name: str) -> Iterator["Element"]:
        return (child for child in self.children if child.name == name)
