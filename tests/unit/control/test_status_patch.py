"""The merge patch that turns one status into another."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kopeck.api.status import CostStatus, Effective, Restarts, TrainingJobStatus, TrainingStatus
from kopeck.control.status_patch import status_patch
from tests.merge_patch import merge_patched

words = st.text("abc", min_size=1, max_size=3)
scalars = st.integers(0, 9) | words | st.booleans()
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)
statuses = st.builds(
    TrainingJobStatus,
    phase=st.sampled_from(["Pending", "Running", "Failed"]),
    attempt=st.integers(0, 3),
    restarts=st.builds(Restarts, failures=st.integers(0, 2)),
    retry_at=st.none() | words,
    effective=st.none() | st.builds(Effective, revision=words, workers=st.integers(1, 9)),
    training=st.none() | st.builds(TrainingStatus, step=st.none() | st.integers(0, 9)),
    cost=st.none() | st.builds(CostStatus, spent=st.none() | st.just("1"), as_of=words),
)


def written(status: TrainingJobStatus) -> dict[str, Any]:
    return status.model_dump(by_alias=True, exclude_none=True)


def test_what_did_not_change_is_not_sent() -> None:
    status = TrainingJobStatus(phase="Running", training=TrainingStatus(step=3))
    assert status_patch(written(status), status) == {}


def test_only_what_changed_is_sent_however_deep_it_lies() -> None:
    before = TrainingJobStatus(training=TrainingStatus(step=3, samples=48))
    after = TrainingJobStatus(training=TrainingStatus(step=3, samples=64))
    assert status_patch(written(before), after) == {"training": {"samples": 64}}


def test_what_is_gone_is_sent_as_null() -> None:
    before = TrainingJobStatus(retry_at="2026-01-01T00:00:00Z", cost=CostStatus(spent="1"))
    after = TrainingJobStatus(cost=CostStatus(spent_at_least="1"))
    assert status_patch(written(before), after) == {
        "retryAt": None,
        "cost": {"spent": None, "spentAtLeast": "1"},
    }


def test_a_field_of_an_older_version_is_removed() -> None:
    before = written(TrainingJobStatus()) | {"olderField": {"a": 1}}
    assert status_patch(before, TrainingJobStatus()) == {"olderField": None}


def test_the_first_status_is_sent_whole() -> None:
    assert status_patch({}, TrainingJobStatus()) == written(TrainingJobStatus())


@given(statuses, statuses)
def test_the_patch_turns_before_into_after(
    before: TrainingJobStatus, after: TrainingJobStatus
) -> None:
    patch = status_patch(written(before), after)
    assert merge_patched(written(before), patch) == written(after)


@given(st.dictionaries(words | st.sampled_from(["cost", "training", "phase"]), values), statuses)
def test_the_patch_turns_anything_into_after(
    before: dict[str, Any], after: TrainingJobStatus
) -> None:
    assert merge_patched(before, status_patch(before, after)) == written(after)


@given(statuses)
def test_a_patch_that_was_applied_leaves_nothing_to_send(status: TrainingJobStatus) -> None:
    applied = merge_patched({}, status_patch({}, status))
    assert status_patch(applied, status) == {}
