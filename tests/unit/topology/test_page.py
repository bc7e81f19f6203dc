"""The tables of the documentation are the tables of the code."""

from pathlib import Path

from kopeck.topology.instance_type import InstanceType
from kopeck.topology.library import INSTANCE_TYPES
from kopeck.topology.rules import RULES, Rule

_PAGE = Path(__file__).parents[3] / "docs" / "nccl.md"


def _table(heading: str) -> list[str]:
    """The rows below a heading, without the table's own head."""
    section = _PAGE.read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    return [line for line in section.splitlines() if line.startswith("|")][2:]


def _rule(rule: Rule) -> str:
    return f"| {rule.name} | {rule.kind} | {rule.keeps} | {rule.source} |"


def _type(known: InstanceType) -> str:
    nics = "unknown" if known.nics is None else f"{known.nics} {known.nic}"
    machine = f"{known.gpus} {known.gpu} | {nics} | {known.verdict} | {known.why}"
    return f"| {', '.join(known.names)} | {known.cloud} | {machine} |"


def test_the_page_has_each_rule_and_no_other() -> None:
    assert _table("The rules") == [_rule(each) for each in RULES]


def test_the_page_has_each_instance_type_and_no_other() -> None:
    assert _table("Instance types") == [_type(each) for each in INSTANCE_TYPES]
