"""The outputs on the page are those of the commands above them."""

import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kopeck.cli import app
from tests.unit.trace.traces import FOLDER, needs_shared_traces

_PAGE = Path(__file__).parents[3] / "docs" / "trace.md"
_EXAMPLE = re.compile(r"```\nkopeck ([^\n]+)\n```\n\n```text\n(.+?)```", re.DOTALL)


@needs_shared_traces
def test_the_page_shows_what_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "traces").mkdir()
    for rank in (0, 1):
        source = FOLDER / f"h200x2_fsdp2_compiled_rank{rank}.json.gz"
        shutil.copy(source, tmp_path / "traces" / f"rank{rank}.json.gz")
    monkeypatch.chdir(tmp_path)
    examples = _EXAMPLE.findall(_PAGE.read_text())
    assert len(examples) == 2
    for command, printed in examples:
        result = CliRunner().invoke(app, command.split(), env={"COLUMNS": "80"})
        lines = [line.rstrip() for line in result.stdout.splitlines()]
        assert lines == printed.splitlines()
