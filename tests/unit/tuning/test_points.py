"""The points of a tuning, and the jobs that have none."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopeck.api.errors import KopeckError
from kopeck.api.training import ActivationsSpec
from kopeck.api.trainingjob import TrainingJobSpec, parse_spec
from kopeck.tuning.points import Point, points_of
from tests.builders import a_job


def a_spec(*, ranks: int = 2, **spec: Any) -> TrainingJobSpec:
    return parse_spec(a_job(**{"workers": {"replicas": ranks}} | spec)["spec"])


def training(global_batch: int, micro_batch: int = 1) -> dict[str, Any]:
    return {"steps": 20, "globalBatchSize": global_batch, "microBatchSize": micro_batch}


NONE, FULL = ActivationsSpec(), ActivationsSpec(mode="full")
BUDGET = ActivationsSpec(mode="budget", memory_budget=0.25)


def sizes(spec: TrainingJobSpec, micro_batches: list[int] | None = None) -> list[int]:
    return [point.micro_batch for point in points_of(spec, micro_batches, [NONE])]


def names(points: list[Point]) -> list[str]:
    return list(dict.fromkeys(point.activations_name for point in points))


@given(ranks=st.integers(1, 16), per_rank=st.integers(1, 500), data=st.data())
def test_every_point_trains_exactly_the_global_batch(
    ranks: int, per_rank: int, data: st.DataObject
) -> None:
    divisors = [size for size in range(1, per_rank + 1) if per_rank % size == 0]
    asked = data.draw(st.none() | st.lists(st.sampled_from(divisors), min_size=1))
    points = points_of(a_spec(ranks=ranks, training=training(ranks * per_rank)), asked, None)
    assert points
    for point in points:
        assert point.micro_batch * point.accumulation * ranks == ranks * per_rank


@pytest.mark.parametrize(
    ("per_rank", "own", "expected"),
    [
        (1, 1, [1]),
        (7, 1, [1, 7]),
        (16, 4, [1, 2, 4, 8, 16]),
        (24, 12, [1, 2, 4, 8, 12, 24]),
        (24, 5, [1, 2, 4, 8, 24]),
    ],
)
def test_unasked_the_divisors_that_double_and_the_jobs_own_size_are_tried(
    per_rank: int, own: int, expected: list[int]
) -> None:
    assert sizes(a_spec(training=training(2 * per_rank, own))) == expected


def test_sizes_are_tried_once_each_from_the_smallest() -> None:
    assert sizes(a_spec(training=training(16)), [8, 2, 8]) == [2, 8]


def test_unasked_every_activation_mode_is_tried_with_every_size() -> None:
    points = points_of(a_spec(training=training(4)), None, None)
    assert names(points) == ["none", "selective", "budget 0.5", "full"]
    assert [str(point) for point in points[:3]] == [
        "micro-batch 1 × 2, none",
        "micro-batch 2 × 1, none",
        "micro-batch 1 × 2, selective",
    ]


def test_the_budget_that_the_job_has_is_the_one_that_is_tried() -> None:
    own = {"activations": {"mode": "budget", "memoryBudget": 0.25}}
    points = points_of(a_spec(training=training(4) | own), None, None)
    assert names(points) == ["none", "selective", "budget 0.25", "full"]


def test_a_budget_is_not_tried_where_nothing_is_compiled() -> None:
    eager = {"compile": {"mode": "off"}}
    points = points_of(a_spec(training=training(4) | eager), None, None)
    assert names(points) == ["none", "selective", "full"]
    with pytest.raises(KopeckError) as refusal:
        points_of(a_spec(training=training(4) | eager), None, [BUDGET])
    assert str(refusal.value) == (
        "--activations: budget is the compiler's, and the job's spec.training.compile.mode is off;"
        " use some of none, selective, full"
    )


def test_modes_are_tried_once_each_in_the_order_that_was_asked() -> None:
    points = points_of(a_spec(training=training(4)), [1], [FULL, BUDGET, NONE, FULL])
    assert names(points) == ["full", "budget 0.25", "none"]
    assert len(points) == 3


@pytest.mark.parametrize(
    ("spec", "micro_batches", "sentence"),
    [
        (
            {"entrypoint": None, "command": ["train"]},
            None,
            (
                "spec.entrypoint: is missing, and the batches of a program of your own are its own;"
                " name a builder as package.module:function"
            ),
        ),
        (
            {"training": None},
            None,
            (
                "spec.training: is missing, so there is nothing to tune;"
                " write steps, globalBatchSize and microBatchSize"
            ),
        ),
        (
            {"training": training(15)},
            None,
            "spec.training.globalBatchSize: 15 is no multiple of the job's 2 ranks; use 16",
        ),
        (
            {"training": training(16)},
            [2, 3],
            (
                "--micro-batch: 3 does not divide the 8 samples of a rank in a step;"
                " use some of 1, 2, 4, 8"
            ),
        ),
        (
            {"training": training(16)},
            [16],
            (
                "--micro-batch: 16 does not divide the 8 samples of a rank in a step;"
                " use some of 1, 2, 4, 8"
            ),
        ),
        (
            {"training": training(16)},
            [0],
            (
                "--micro-batch: 0 does not divide the 8 samples of a rank in a step;"
                " use some of 1, 2, 4, 8"
            ),
        ),
    ],
)
def test_what_cannot_be_tuned_is_refused_with_one_sentence(
    spec: dict[str, Any], micro_batches: list[int] | None, sentence: str
) -> None:
    with pytest.raises(KopeckError) as refusal:
        points_of(a_spec(**spec), micro_batches, None)
    assert str(refusal.value) == sentence
