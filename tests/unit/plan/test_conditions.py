"""Conditions of the standard shape."""

from kopeck.plan.conditions import with_condition
from tests.builders import T0, after


def test_a_new_condition_is_added_with_the_time_of_its_transition() -> None:
    (condition,) = with_condition([], "Running", "False", "Starting", "0 of 2 run", T0)
    assert condition.type == "Running"
    assert condition.last_transition_time == "2026-01-01T00:00:00Z"


def test_only_a_change_of_status_moves_the_transition_time() -> None:
    first = with_condition([], "Running", "False", "Starting", "0 of 2 run", T0)
    (reworded,) = with_condition(first, "Running", "False", "Image", "no image", after(hours=1))
    assert (reworded.reason, reworded.message) == ("Image", "no image")
    assert reworded.last_transition_time == "2026-01-01T00:00:00Z"
    (changed,) = with_condition([reworded], "Running", "True", "Running", "all", after(hours=2))
    assert changed.last_transition_time == "2026-01-01T02:00:00Z"


def test_the_others_keep_their_place() -> None:
    conditions = with_condition([], "Running", "False", "Starting", "", T0)
    conditions = with_condition(conditions, "PriceKnown", "True", "Priced", "", T0)
    conditions = with_condition(conditions, "Running", "True", "Running", "", T0)
    assert [each.type for each in conditions] == ["Running", "PriceKnown"]


def test_saying_the_same_again_changes_nothing() -> None:
    said = with_condition([], "Running", "False", "Starting", "0 of 2 run", T0)
    again = with_condition(said, "Running", "False", "Starting", "0 of 2 run", after(hours=1))
    assert again == said
