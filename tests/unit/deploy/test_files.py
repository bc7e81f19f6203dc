"""What is generated is checked in as its sources give it."""

from pathlib import Path

import pytest

from kopeck.deploy.files import generated_files


@pytest.mark.parametrize(("path", "text"), generated_files().items(), ids=str)
def test_a_generated_file_is_up_to_date(path: Path, text: str) -> None:
    assert path.read_text(encoding="utf-8") == text, "out of date; run `make generate`"
