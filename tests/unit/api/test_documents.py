"""The jobs that the documents show are jobs."""

import re
from pathlib import Path

import pytest
import yaml

from kopeck.api.names import KIND
from kopeck.api.trainingjob import parse_spec

DOCUMENTS = [Path("README.md"), *sorted(Path("docs").glob("*.md"))]
SHOWN = [
    manifest
    for document in DOCUMENTS
    for block in re.findall(r"```yaml\n(.*?)```", document.read_text(), re.DOTALL)
    if isinstance(manifest := yaml.safe_load(block), dict) and manifest.get("kind") == KIND
]


def test_a_job_is_shown() -> None:
    assert SHOWN


@pytest.mark.parametrize("manifest", SHOWN, ids=lambda manifest: manifest["metadata"]["name"])
def test_a_shown_job_is_one(manifest: dict[str, dict[str, object]]) -> None:
    parse_spec(manifest["spec"])
