"""Whether NCCL reads a topology file, and reads it as it is written."""

from kopeck.topology.attributes import check_attributes
from kopeck.topology.reader import read
from kopeck.topology.rules import Finding
from kopeck.topology.structure import check_structure


def check(content: bytes) -> list[Finding]:
    """All places where the file does not keep a rule, by line; see `rules` for their kinds."""
    top, findings = read(content)
    found = [*findings, *check_structure(top), *check_attributes(top)]
    return sorted(found, key=lambda each: each.line)


def violations(findings: list[Finding]) -> list[Finding]:
    """Those that stop NCCL or that it ignores: all but advice."""
    return [each for each in findings if each.rule.kind != "advice"]
