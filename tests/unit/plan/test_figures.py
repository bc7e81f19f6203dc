"""Figures of training and money in status: unknown is absent, never zero."""

from decimal import Decimal
from typing import Any

import pytest

from kopeck.api.status import (
    CostStatus,
    DollarsPerSample,
    Effective,
    TrainingJobStatus,
    TrainingStatus,
)
from kopeck.api.trainingjob import TrainingJobSpec, parse_spec
from kopeck.cost.ledger import Ledger
from kopeck.plan.figures import (
    cost_status,
    cost_without_ledger,
    display,
    training_after_loss,
    training_at_end,
    training_unheard_of,
    training_while_running,
)
from kopeck.plan.pod_facts import PodFacts
from tests.builders import (
    T0,
    a_job,
    a_ledger,
    a_report,
    a_segment,
    after,
    ended,
    facts_of,
)

A_PROGRESS = {
    "step": 12,
    "samples": 192,
    "samplesPerSecond": 20.0,
    "mfu": 0.41,
    "loss": 3.5,
    "checkpointStep": 10,
    "compileMode": "default",
    "compileSeconds": 26.0,
    "graphBreaks": 0,
    "recompiles": 1,
    "compileDecision": "compile mode default for 20 steps",
    "eagerFallbacks": 2,
    "nonfiniteLosses": 0,
    "lossSpikes": 3,
    "reportedAt": 1_767_225_600.75,
}


def a_spec(**spec: Any) -> TrainingJobSpec:
    return parse_spec(a_job(**spec)["spec"])


def completed(worker: int = 0, **report: Any) -> PodFacts:
    return facts_of(worker, status=ended(0, message=a_report(**report)))


def crashed(worker: int = 0, **report: Any) -> PodFacts:
    return facts_of(worker, status=ended(1, message=a_report(**report)))


def test_the_speed_of_a_job_is_that_of_a_worker_times_their_number() -> None:
    training = training_while_running(None, A_PROGRESS, workers=4)
    assert training == TrainingStatus(
        step=12,
        samples=192,
        samples_per_second=80.0,
        mfu=0.41,
        loss=3.5,
        checkpoint_step=10,
        compile_mode="default",
        compile_seconds=26.0,
        graph_breaks=0,
        recompiles=1,
        compile_decision="compile mode default for 20 steps",
        eager_fallbacks=2,
        nonfinite_losses=0,
        loss_spikes=3,
        reported_at="2026-01-01T00:00:00Z",
    )


def test_what_is_not_reported_this_time_stays_as_it_was() -> None:
    before = training_while_running(None, A_PROGRESS, workers=1)
    training = training_while_running(before, {"step": 13}, workers=1)
    assert training is not None
    assert (training.step, training.loss) == (13, 3.5)


def test_a_speed_that_is_not_told_any_more_is_unknown_and_so_is_the_marginal_cost() -> None:
    before = training_while_running(None, A_PROGRESS, workers=1)
    stalled = {name: A_PROGRESS[name] for name in A_PROGRESS.keys() - {"samplesPerSecond", "mfu"}}
    training = training_while_running(before, stalled, workers=1)
    assert training is not None
    assert (training.samples_per_second, training.mfu) == (None, None)
    assert training.samples == 192
    cost = money(a_ledger(a_segment()), training, runs=True)
    assert cost.dollars_per_sample is not None
    assert cost.dollars_per_sample.all_in is not None
    assert cost.dollars_per_sample.marginal is None


@pytest.mark.parametrize(("silent_seconds", "is_known"), [(0, True), (180, True), (182, False)])
def test_the_speed_of_a_worker_that_does_not_answer_is_known_for_three_minutes(
    silent_seconds: float, *, is_known: bool
) -> None:
    before = training_while_running(None, A_PROGRESS, workers=1)
    training = training_unheard_of(before, after(seconds=silent_seconds))
    assert training is not None
    speeds = (training.samples_per_second, training.mfu)
    assert speeds == ((20.0, 0.41) if is_known else (None, None))
    assert training.samples == 192


def test_of_a_worker_that_never_answered_nothing_is_known() -> None:
    assert training_unheard_of(None, T0) is None


@pytest.mark.parametrize("report", [{}, {"v": 1, "worker": 0, "ranks": []}, {"step": "twelve"}])
def test_a_worker_that_trains_no_step_yet_changes_nothing(report: dict[str, Any]) -> None:
    assert training_while_running(None, report, workers=2) is None


def test_a_loss_that_is_no_number_is_unknown() -> None:
    training = training_while_running(None, A_PROGRESS | {"loss": float("nan")}, workers=1)
    assert training is not None
    assert training.loss is None


def test_at_the_end_speeds_and_breaks_add_up_and_the_slowest_compile_counts() -> None:
    pods = (
        completed(0, compileSeconds=12.0, eagerFallbacks=1, lossSpikes=1),
        completed(1, compileSeconds=15.0, graphBreaks=2, eagerFallbacks=1, lossSpikes=1),
    )
    training = training_at_end(None, pods, T0)
    assert training is not None
    assert training.samples_per_second == 80.0
    assert (training.compile_seconds, training.graph_breaks) == (15.0, 2)
    assert (training.eager_fallbacks, training.loss_spikes) == (2, 1)
    assert (training.step, training.samples) == (20, 320)


def test_the_furthest_worker_says_how_many_samples_are_kept() -> None:
    pods = completed(0, samples=304, step=19), completed(1)
    training = training_at_end(None, pods, T0)
    assert training is not None
    assert training.samples == 320


def test_a_speed_of_some_workers_is_not_the_speed_of_all() -> None:
    pods = completed(0), completed(1, samplesPerSecond=None)
    training = training_at_end(None, pods, T0)
    assert training is not None
    assert training.samples_per_second is None


def test_workers_that_left_no_report_change_nothing() -> None:
    before = TrainingStatus(step=3)
    assert training_at_end(before, [facts_of(status=ended(0))], T0) is before


def test_a_loss_of_workers_keeps_the_samples_of_the_last_checkpoint_and_no_more() -> None:
    before = TrainingStatus(step=15, samples=240, loss=2.0, checkpoint_step=10)
    assert training_after_loss(before, [facts_of()], 16) == TrainingStatus(
        step=10, samples=160, checkpoint_step=10
    )


def test_the_last_word_of_a_dead_worker_may_know_of_a_newer_checkpoint() -> None:
    before = TrainingStatus(step=15, samples=240, checkpoint_step=10)
    pods = crashed(0, checkpointStep=None), crashed(1, checkpointStep=20)
    kept = training_after_loss(before, pods, 16)
    assert kept is not None
    assert (kept.step, kept.samples) == (20, 320)


def test_kept_samples_are_of_the_batch_that_they_were_trained_in() -> None:
    before = TrainingStatus(step=15, samples=240, checkpoint_step=10)
    kept = training_after_loss(before, [], 64)  # the batch that the user has just asked for
    assert kept is not None
    assert (kept.step, kept.samples) == (10, 160)


def test_without_a_checkpoint_nothing_is_kept() -> None:
    kept = training_after_loss(TrainingStatus(step=15, samples=240), [facts_of()], 16)
    assert kept is not None
    assert (kept.step, kept.samples, kept.samples_per_second) == (None, None, None)


def test_samples_of_a_program_whose_batch_is_not_known_are_unknown_after_a_loss() -> None:
    kept = training_after_loss(TrainingStatus(checkpoint_step=10), [], None)
    assert kept is not None
    assert (kept.step, kept.samples) == (10, None)


def money(ledger: Ledger, training: TrainingStatus | None = None, *, runs: bool) -> CostStatus:
    cost = cost_status(ledger, training, runs=runs, now=after(hours=2))
    assert cost is not None
    return cost


def test_there_is_no_money_before_anything_is_held() -> None:
    assert cost_status(Ledger(), None, runs=False, now=T0) is None


def test_money_of_a_running_job() -> None:
    training = TrainingStatus(samples=1000, samples_per_second=2.0)
    ledger = a_ledger(a_segment(dollars_per_hour=Decimal("3.60")))
    assert money(ledger, training, runs=True) == CostStatus(
        hourly_rate="3.6",
        spent="7.2",
        dollars_per_sample=DollarsPerSample(all_in="0.0072", marginal="0.0005"),
        price_source="book",
        as_of="2026-01-01T02:00:00Z",
    )


def test_a_job_that_does_not_run_has_no_marginal_cost() -> None:
    training = TrainingStatus(samples=1000, samples_per_second=2.0)
    unit_costs = money(a_ledger(a_segment()), training, runs=False).dollars_per_sample
    assert unit_costs is not None
    assert unit_costs.marginal is None


@pytest.mark.parametrize("training", [None, TrainingStatus(), TrainingStatus(samples=0)])
def test_without_a_sample_there_is_no_unit_cost(training: TrainingStatus | None) -> None:
    assert money(a_ledger(a_segment()), training, runs=True).dollars_per_sample is None


def test_an_unknown_price_leaves_the_priced_part_and_no_more() -> None:
    ledger = a_ledger(a_segment("priced"), a_segment("unpriced", dollars_per_hour=None))
    cost = money(ledger, TrainingStatus(samples=100, samples_per_second=1.0), runs=True)
    assert (cost.spent, cost.hourly_rate, cost.dollars_per_sample) == (None, None, None)
    assert cost.spent_at_least == "2"


def test_what_is_uncertain_is_told_apart() -> None:
    unseen = a_segment(end=after(hours=1), estimated_end=True, uncertain_until=after(hours=2))
    cost = money(a_ledger(unseen), runs=False)
    assert (cost.spent, cost.uncertain) == ("1", "1")


def test_every_book_that_priced_a_part_is_named() -> None:
    ledger = a_ledger(a_segment("one", price_book="b"), a_segment("two", price_book="a"))
    assert money(ledger, runs=True).price_source == "a, b"


def a_status(**fields: Any) -> TrainingJobStatus:
    return TrainingJobStatus(**fields)


def test_kubectl_shows_figures_that_can_be_read() -> None:
    status = a_status(
        ready_replicas=1,
        effective=Effective(revision="r", workers=2),
        training=TrainingStatus(step=12),
        cost=CostStatus(spent="1234.5678", dollars_per_sample=DollarsPerSample(all_in="0.0000125")),
    )
    shown = display(status, a_spec())
    assert shown.model_dump(by_alias=True) == {
        "workers": "1/2",
        "step": "12/20",
        "costPer1kSamples": "$0.0125",
        "spent": "$1,234.57",
    }


def test_kubectl_shows_nothing_for_what_is_unknown() -> None:
    shown = display(a_status(cost=CostStatus(spent_at_least="2")), a_spec())
    assert shown.model_dump(exclude_none=True) == {}


def test_steps_are_counted_to_the_last_sample_or_without_an_end() -> None:
    status = a_status(training=TrainingStatus(step=12))
    by_samples = a_spec(training={"steps": None, "samples": 160})
    assert display(status, by_samples).step == "12/10"
    own_program = a_spec(entrypoint=None, training=None, command=["python3", "train.py"])
    assert display(status, own_program).step == "12"


@pytest.mark.parametrize(
    ("before", "at_least"),
    [
        (None, None),
        (CostStatus(spent="12.5", hourly_rate="3", uncertain="1", price_source="book"), "12.5"),
        (CostStatus(spent_at_least="7"), "7"),
    ],
)
def test_without_a_ledger_no_less_is_spent_than_before_and_the_rest_is_unknown(
    before: CostStatus | None, at_least: str | None
) -> None:
    known = cost_without_ledger(before, after(hours=1))
    assert known == CostStatus(spent_at_least=at_least, as_of="2026-01-01T01:00:00Z")
