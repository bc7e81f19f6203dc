"""The chart's hand-written parts say what the code says."""

import json
import tomllib
from pathlib import Path
from typing import Any

import yaml

from kopeck.api.spec import Spec
from kopeck.control.settings import OperatorSettings
from kopeck.pricing.book import PriceBook, PriceRow

CHART = Path("charts/kopeck")
SET_BY_THE_CHART = {"namespace", "port", "priceBook"}


def schema_of(value: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
    found: dict[str, Any] = schema["properties"][value]
    return found


def fields_of(model: type[Spec]) -> set[str]:
    return {str(field.alias) for field in model.model_fields.values()}


def test_every_setting_of_the_operator_is_a_value_or_set_by_the_chart() -> None:
    values = schema_of("config")["properties"].keys()
    assert values | SET_BY_THE_CHART == fields_of(OperatorSettings)


def test_a_price_book_in_the_values_has_the_fields_of_one_in_a_file() -> None:
    book = schema_of("priceBook")
    assert book["properties"].keys() == fields_of(PriceBook)
    assert book["properties"]["prices"]["items"]["properties"].keys() == fields_of(PriceRow)


def test_the_chart_has_the_projects_version() -> None:
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert {chart["version"], chart["appVersion"]} == {project["version"]}
