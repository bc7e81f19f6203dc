"""What the demo says at its end, whatever became of its job."""

from typing import Any

import pytest

from tests.demo import what_is_missing

FAILED = {"type": "Failed", "status": "True", "message": "rank 1 exited with 3"}
NO_PRICE = {"type": "PriceKnown", "status": "False", "message": "no price for node-1"}
PRICED = {"type": "PriceKnown", "status": "True", "message": ""}


@pytest.mark.parametrize(
    ("phase", "conditions", "said"),
    [
        ("Complete", [PRICED], None),
        ("Complete", [NO_PRICE], "No dollars: no price for node-1"),
        ("Failed", [FAILED], "byte-llama failed: rank 1 exited with 3"),
        ("Failed", [FAILED, PRICED], "byte-llama failed: rank 1 exited with 3"),
    ],
)
def test_what_is_missing_is_said(
    phase: str, conditions: list[dict[str, Any]], said: str | None
) -> None:
    assert what_is_missing({"phase": phase, "conditions": conditions}) == said
