"""The checked-in reference page is the one that names.py makes."""

from pathlib import Path

from kopeck_exporter.reference import reference_page

PAGE = Path(__file__).parents[3] / "docs" / "metrics.md"


def test_the_reference_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference_page()
