"""The table of rules in the documentation is the table in the code."""

from pathlib import Path

from kopeck.topology.rules import RULES, Rule

_PAGE = Path(__file__).parents[3] / "docs" / "nccl.md"


def _row(rule: Rule) -> str:
    return f"| {rule.name} | {rule.kind} | {rule.keeps} | {rule.source} |"


def test_the_page_has_each_rule_and_no_other() -> None:
    table = _PAGE.read_text().split("## The rules\n")[1].split("\n## ")[0]
    assert [line for line in table.splitlines() if line.startswith("|")][2:] == [
        _row(rule) for rule in RULES
    ]
