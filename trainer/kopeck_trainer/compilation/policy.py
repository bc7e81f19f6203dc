"""Which compile mode `auto` tries next, and which it keeps: arithmetic on measured times."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kopeck_trainer.config import CompileMode

DROPPED_STEPS: Final = 2
"""After each compilation: first runs of kernels, and allocators that settle."""

MEASURED_STEPS: Final = 5

TRIAL_STEPS: Final = DROPPED_STEPS + MEASURED_STEPS

MOST_SPENT_RATIO: Final = 0.01
"""Of the remaining run, for all trials but the first. A trial that gains nothing costs no more."""

DRIFT_RATIO: Final = 0.02
"""Between two measurements of one mode: a GPU that has cooled down while something was compiled is
faster at first, by up to 2.7 % on an H200."""

WARM_RATIO: Final = 0.1
"""Of a mode's compile seconds, to compile it again from the cache: 4.3 s after 64.8 s on a CPU."""

COMPILE_RATIO: Final[dict[CompileMode, float]] = {
    "off": 0.0,
    "reduce-overhead": 0.5,
    "max-autotune-no-cudagraphs": 25.0,
}
"""Compile seconds to expect of a mode, in multiples of those of `default`. On an H200, blocks of a
Llama and of a small one: 0.3 to 0.4 to record graphs, 11 to 23 to tune."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What real steps in one mode have shown; the slowest rank counts."""

    mode: CompileMode
    compile_seconds: float
    step_seconds: float | None = None
    """Median; None where the mode is infeasible."""
    infeasible: str | None = None
    """Why the mode cannot be used."""
    differs: bool = False
    """It is infeasible because it computes something else than eager."""


def next_mode(
    candidates: Sequence[CompileMode], trials: Sequence[Trial], remaining_steps: int
) -> CompileMode | None:
    """The first untried candidate that the rest of the run is long enough for."""
    tried = {trial.mode for trial in trials}
    untried = (mode for mode in candidates if mode not in tried)
    return next((mode for mode in untried if is_worth_trying(mode, trials, remaining_steps)), None)


def is_worth_trying(mode: CompileMode, trials: Sequence[Trial], remaining_steps: int) -> bool:
    """Whether all trials, this one too, take a small part of the rest of the run.

    True while no mode is known to work: training needs one. False where nothing tells how long the
    mode compiles: where the first, to which it is compared, could not be used.
    """
    measured = [trial.step_seconds for trial in trials if trial.step_seconds is not None]
    if not measured:
        return True
    first, *others = trials
    if COMPILE_RATIO.get(mode, 1.0) > 0 and first.step_seconds is None:
        return False
    compile_seconds = [
        *(trial.compile_seconds for trial in others),
        COMPILE_RATIO.get(mode, 1.0) * first.compile_seconds,
    ]
    step_seconds = min(measured)
    spent_seconds = sum(compile_seconds) + len(trials) * TRIAL_STEPS * step_seconds
    return spent_seconds <= MOST_SPENT_RATIO * remaining_steps * step_seconds


def cheapest(trials: Sequence[Trial], remaining_steps: int) -> Trial | None:
    """The first feasible trial whose `total_seconds` are the lowest, but for what drifts.

    None if no mode is feasible.
    """
    feasible = [trial for trial in trials if trial.step_seconds is not None]
    lowest = min((total_seconds(each, remaining_steps) for each in feasible), default=0.0)
    enough = lowest * (1 + DRIFT_RATIO)
    return next((each for each in feasible if total_seconds(each, remaining_steps) <= enough), None)


def total_seconds(trial: Trial, remaining_steps: int) -> float:
    """Of the rest of the run; infinite where the mode is infeasible.

    What its trial has compiled is paid and cached: what remains is to compile it again from there.
    Every rate in dollars per hour has the same cheapest mode, so none is asked for.
    """
    if trial.step_seconds is None:
        return float("inf")
    return WARM_RATIO * trial.compile_seconds + remaining_steps * trial.step_seconds


def break_even_steps(trial: Trial, basis: Trial) -> float | None:
    """Steps after which `trial` has repaid what its compilation took longer than that of `basis`.

    None where it never does.
    """
    if trial.step_seconds is None or basis.step_seconds is None:
        return None
    saved_seconds = basis.step_seconds - trial.step_seconds
    if saved_seconds <= 0:
        return None
    return max(0.0, trial.compile_seconds - basis.compile_seconds) / saved_seconds
