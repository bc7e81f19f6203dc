"""`kopeck run`: what a worker says is shown as it is."""

import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from kopeck.cli import app
from kopeck.local.job import LocalResult
from tests.builders import a_job


def test_brackets_in_what_a_worker_says_are_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of paths and shapes: they are no markup, closed or not."""
    said = "list index [0] of [red] is none, see [/tmp]"
    ended = LocalResult(1, 2.0, {"message": said}, (), None, None)
    monkeypatch.setattr(sys.modules["kopeck.cli.run"], "run_job", lambda *_: ended)
    manifest = tmp_path / "job.yaml"
    manifest.write_text(yaml.safe_dump(a_job("tiny")))
    result = CliRunner().invoke(app, ["run", "-f", str(manifest)], env={"COLUMNS": "100"})
    assert result.exit_code == 1
    assert said in result.stderr
