import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from kopeck_trainer.compilation.measuring import Measurement, StepFacts
from kopeck_trainer.compilation.policy import (
    Trial,
    break_even_steps,
    cheapest,
    next_mode,
    total_seconds,
)
from kopeck_trainer.config import CompileMode
from tests.gpu.totals import OVER_BEST, RUN_MINUTES, auto_total, fixed_totals

RESULTS = Path(__file__).parents[3] / "gpu" / "results"

CANDIDATES: list[CompileMode] = [
    "default",
    "off",
    "reduce-overhead",
    "max-autotune-no-cudagraphs",
]


def a_trial(mode: CompileMode, compile_seconds: float, step_seconds: float | None) -> Trial:
    return Trial(mode=mode, compile_seconds=compile_seconds, step_seconds=step_seconds)


def tried(remaining_steps: int, world: Mapping[CompileMode, tuple[float, float]]) -> list[Trial]:
    """All trials of a run whose modes take (compile seconds, step seconds)."""
    trials: list[Trial] = []
    while mode := next_mode(CANDIDATES, trials, remaining_steps):
        trials.append(a_trial(mode, *world[mode]))
    return trials


LLAMA: dict[CompileMode, tuple[float, float]] = {
    "default": (8.6, 0.0636),
    "off": (0.0, 0.0718),
    "reduce-overhead": (3.4, 0.0639),
    "max-autotune-no-cudagraphs": (201.7, 0.0627),
}
"""Seconds to compile and of a step, of an H200; later ones are in `tests/gpu/results`."""


def test_a_short_run_tries_nothing_but_the_first_mode() -> None:
    assert [trial.mode for trial in tried(500, LLAMA)] == ["default"]


def test_a_middling_run_does_not_pay_for_a_long_autotune() -> None:
    steps_of_an_hour = int(3600 / 0.0636)
    modes = [trial.mode for trial in tried(steps_of_an_hour, LLAMA)]
    assert modes == ["default", "off", "reduce-overhead"]


def test_a_long_run_tries_all_modes_in_order() -> None:
    week_steps = int(7 * 24 * 3600 / 0.0636)
    trials = tried(week_steps, LLAMA)
    assert [trial.mode for trial in trials] == CANDIDATES
    best = cheapest(trials, week_steps)
    assert best is not None
    assert best.mode == "default"  # what tuning seems to gain is drift


@pytest.mark.parametrize("remaining_steps", [0, 10, 10**3, 10**4, 10**5, 10**6, 10**7])
@pytest.mark.parametrize(
    "world",
    [
        LLAMA,
        LLAMA | {"off": (0.0, 0.05)},
        LLAMA | {"max-autotune-no-cudagraphs": (201.7, 0.03)},
        LLAMA | {"reduce-overhead": (4.3, 0.05)},
    ],
)
def test_trials_take_one_percent_of_the_rest_of_the_run_at_most(
    remaining_steps: int, world: Mapping[CompileMode, tuple[float, float]]
) -> None:
    trials = tried(remaining_steps, world)
    spent_seconds = sum(trial.compile_seconds for trial in trials[1:])
    assert spent_seconds <= 0.01 * remaining_steps * world["default"][1]


@pytest.mark.parametrize("minutes", RUN_MINUTES)
@pytest.mark.parametrize("model", ["llama", "byte_llama"])
def test_what_was_measured_on_a_gpu_ends_a_hundredth_above_the_best_mode_at_most(
    model: str, minutes: int
) -> None:
    measured = json.loads((RESULTS / f"policy_table_{model}.json").read_text())
    trials = [Trial(**each) for each in measured["trials"]]
    steady = measured["step_seconds"]
    steps = int(60 * minutes / steady["default"])
    best = min(fixed_totals(trials, steady, steps).values())
    assert auto_total(trials, steady, steps) <= OVER_BEST * best


def test_the_cheapest_mode_counts_remaining_steps_and_compiling_again_from_the_cache() -> None:
    quick, fast = a_trial("default", 10, 1.0), a_trial("max-autotune-no-cudagraphs", 110, 0.9)
    assert total_seconds(fast, 100) == 101
    assert cheapest([quick, fast], 99) == quick
    assert cheapest([quick, fast], 200) == fast
    assert cheapest([quick, fast], 101) == quick  # less than two measurements of it differ by
    assert break_even_steps(fast, quick) == pytest.approx(1000)
    assert break_even_steps(quick, fast) is None


def test_what_is_infeasible_is_neither_tried_again_nor_chosen() -> None:
    broken = Trial(mode="default", compile_seconds=0.0, infeasible="it raised")
    assert next_mode(CANDIDATES, [broken], 3) == "off"
    eager = a_trial("off", 0.0, 1.0)
    assert cheapest([broken, eager], 10) == eager
    assert next_mode(CANDIDATES, [broken, eager], 10**9) is None
    assert cheapest([broken], 10) is None
    all_broken = [Trial(mode=mode, compile_seconds=0.0, infeasible="no") for mode in CANDIDATES]
    assert next_mode(CANDIDATES, all_broken, 10**9) is None


def seconds(*ranks: float, has_compiled: bool = False) -> list[StepFacts]:
    return [StepFacts(seconds=each, has_compiled=has_compiled) for each in ranks]


def test_two_steps_after_each_compilation_are_dropped_and_the_slowest_rank_counts() -> None:
    measurement = Measurement("default", remaining_steps=1000)
    for step in (
        [StepFacts(seconds=60, has_compiled=True), StepFacts(seconds=9, has_compiled=False)],
        seconds(9, 9),
        seconds(9, 9),
        seconds(9, 9),
        seconds(9, 9, has_compiled=True),  # what was measured until here is void
        seconds(9, 9),
        seconds(9, 9),
        *[seconds(1, 2), seconds(3, 1), seconds(1, 4), seconds(2, 1), seconds(5, 1)],
    ):
        assert not measurement.is_over
        measurement.add(step)
    assert measurement.is_over
    assert measurement.result(12.0) == a_trial("default", 12.0, 3)


def test_a_mode_that_never_stops_recording_is_given_up_after_a_hundredth_of_the_run() -> None:
    measurement = Measurement("reduce-overhead", remaining_steps=3000)
    while not measurement.is_over:
        measurement.add(seconds(1, has_compiled=True))
    assert measurement.steps == 30
    assert measurement.result(5.0).infeasible == "it still compiled or recorded after 30 steps"
