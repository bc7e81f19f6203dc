"""Totals follow the reports, and never fall."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopeck_exporter.fields import MalformedReportError
from kopeck_exporter.report import Report, read_report
from kopeck_exporter.totals import Totals
from kopeck_exporter.worker import Worker
from tests.unit.exporter.reporting import a_message, steps_of


def a_report(**facts: Any) -> Report:
    return read_report(a_message(**facts))


def after_steps(steps: int, **facts: Any) -> Report:
    """A report of a process that took `steps` steps of 8 samples and one second."""
    message: dict[str, Any] = {
        "seq": steps,
        "samples": 8 * steps,
        "step_bucket_counts": steps_of(*[1.0] * steps),
        "step_seconds_sum": float(steps),
        "phase_seconds": {"compute": float(steps)},
    }
    return a_report(**(message | facts))


def totals_of(worker: Worker) -> Totals:
    (rank,) = worker.ranks()
    return rank.totals


def falls(before: Totals, after: Totals) -> bool:
    pairs = [
        (before.samples, after.samples),
        (before.tokens or 0, after.tokens or 0),
        (before.step_seconds_sum, after.step_seconds_sum),
        (before.compile_seconds or 0, after.compile_seconds or 0),
        (before.graph_breaks or 0, after.graph_breaks or 0),
        (before.recompiles or 0, after.recompiles or 0),
        *zip(before.step_bucket_counts, after.step_bucket_counts, strict=True),
        *zip(before.phase_seconds, after.phase_seconds, strict=True),
    ]
    return any(later < earlier for earlier, later in pairs)


@given(st.sets(st.integers(1, 30)))
def test_dropped_messages_change_no_total(dropped: set[int]) -> None:
    worker = Worker(processes=1)
    for step in range(1, 32):
        if step not in dropped:
            worker.receive(after_steps(step), 0, now_seconds=step)
    assert totals_of(worker).samples == 8 * 31
    assert totals_of(worker).steps == 31


def test_a_message_twice_counts_once() -> None:
    worker = Worker(processes=1)
    for _ in range(2):
        worker.receive(after_steps(3), 0, now_seconds=1)
    assert totals_of(worker).samples == 24


def test_a_process_that_reconnects_goes_on_where_it_was() -> None:
    worker = Worker(processes=1)
    worker.receive(after_steps(3), 0, now_seconds=1)
    worker.receive(after_steps(5), 1, now_seconds=2)
    assert totals_of(worker).samples == 40


def test_a_process_that_repeats_its_last_message_after_it_reconnected_is_no_new_one() -> None:
    worker = Worker(processes=1)
    worker.receive(after_steps(3), 0, now_seconds=1)
    worker.receive(after_steps(3), 1, now_seconds=2)
    assert totals_of(worker).samples == 24


def test_a_new_process_of_a_rank_adds_to_what_the_one_before_it_did() -> None:
    worker = Worker(processes=1)
    worker.receive(after_steps(3), 0, now_seconds=1)
    worker.receive(after_steps(1), 1, now_seconds=2)
    worker.receive(after_steps(2), 1, now_seconds=3)
    assert totals_of(worker).samples == 40
    assert totals_of(worker).steps == 5


def test_a_new_process_is_known_by_its_totals_even_if_its_first_messages_were_dropped() -> None:
    worker = Worker(processes=1)
    worker.receive(after_steps(3), 0, now_seconds=1)
    worker.receive(after_steps(1, seq=50), 1, now_seconds=2)
    assert totals_of(worker).samples == 32


def test_what_an_older_connection_still_held_is_passed_over() -> None:
    worker = Worker(processes=1)
    worker.receive(after_steps(3), 0, now_seconds=1)
    worker.receive(after_steps(1), 1, now_seconds=2)
    worker.receive(after_steps(4), 0, now_seconds=3)
    worker.receive(after_steps(2), 1, now_seconds=4)
    assert totals_of(worker).samples == 40


def test_a_clock_that_steps_back_hides_no_report() -> None:
    worker = Worker(processes=1)
    worker.receive(after_steps(3, time=1_800_000_000.0), 0, now_seconds=1)
    worker.receive(after_steps(4, time=1_700_000_000.0), 0, now_seconds=2)
    assert totals_of(worker).samples == 32


def test_seconds_that_fall_by_rounding_do_not_start_a_new_process() -> None:
    worker = Worker(processes=1)
    worker.receive(after_steps(3, phase_seconds={"idle": 0.30000000000000004}), 0, now_seconds=1)
    worker.receive(after_steps(3, seq=4, phase_seconds={"idle": 0.3}), 1, now_seconds=2)
    assert totals_of(worker).samples == 24
    assert sum(totals_of(worker).phase_seconds) == 0.30000000000000004


def test_the_launchers_last_word_adds_to_the_rank_and_makes_no_figure_fresh() -> None:
    worker = Worker(processes=1)
    worker.receive(after_steps(3), 0, now_seconds=1)
    closed = after_steps(3, seq=4, is_last=True, phase_seconds={"compute": 3.0, "idle": 40.0})
    worker.receive(closed, 1, now_seconds=41)
    (rank,) = worker.ranks()
    assert (rank.totals.steps, sum(rank.totals.phase_seconds)) == (3, 43)
    assert not rank.is_fresh(41)


def test_a_last_word_that_goes_on_from_an_old_file_is_no_new_process() -> None:
    worker = Worker(processes=1)
    worker.receive(after_steps(30), 0, now_seconds=1)
    worker.receive(after_steps(3, seq=4, is_last=True), 1, now_seconds=2)
    assert totals_of(worker).steps == 30


@given(
    st.lists(
        st.tuples(
            st.integers(0, 2),  # connection
            st.integers(0, 5),  # steps
            st.integers(0, 5),  # sequence
            st.none() | st.integers(0, 5),  # tokens
            st.floats(0, 5),  # seconds of compute
        ),
        max_size=12,
    )
)
def test_totals_never_fall_whatever_the_senders_do(
    messages: list[tuple[int, int, int, int | None, float]],
) -> None:
    worker = Worker(processes=1)
    before = None
    for now, (connection, steps, sequence, tokens, seconds) in enumerate(messages):
        compute = {"compute": seconds}
        report = after_steps(steps, seq=sequence, tokens=tokens, phase_seconds=compute)
        worker.receive(report, connection, now_seconds=now)
        after = totals_of(worker)
        assert before is None or not falls(before, after)
        before = after


def test_a_rank_that_the_worker_does_not_have_is_refused() -> None:
    worker = Worker(processes=2)
    with pytest.raises(MalformedReportError, match="local_rank is not below 2"):
        worker.receive(a_report(local_rank=2), 0, now_seconds=1)
    assert worker.ranks() == []


def test_ranks_are_complete_once_each_has_reported() -> None:
    worker = Worker(processes=2)
    worker.receive(a_report(rank=1), 0, now_seconds=1)
    assert worker.all_ranks() is None
    worker.receive(a_report(rank=0), 1, now_seconds=1)
    assert [each.report.rank for each in worker.all_ranks() or []] == [0, 1]
