"""What whole runs come to, by measured compile and step seconds."""

from collections.abc import Mapping, Sequence

from kopeck_trainer.compilation.policy import TRIAL_STEPS, WARM_RATIO, Trial, cheapest, next_mode
from kopeck_trainer.config import CompileMode

RUN_MINUTES = (10, 60, 600, 6000)
"""Of the runs whose totals are compared; in mode `default`. What compiles for ten seconds cannot be
within a hundredth of eager in a shorter one."""
OVER_BEST = 1.01
"""How far `auto` may end above the best mode."""


def auto_total(trials: Sequence[Trial], steady: Mapping[CompileMode, float], steps: int) -> float:
    """Seconds of a run of so many steps, by the policy on the measured trials."""
    by_mode = {trial.mode: trial for trial in trials}
    tried: list[Trial] = []
    while mode := next_mode(list(by_mode), tried, steps - TRIAL_STEPS * len(tried)):
        tried.append(by_mode[mode])
    best = cheapest(tried, steps)
    assert best is not None
    losers = {trial.mode for trial in tried} - {"off", best.mode}
    again_seconds = WARM_RATIO * best.compile_seconds if losers else 0.0
    trial_seconds = sum(
        each.compile_seconds + TRIAL_STEPS * (each.step_seconds or 0) for each in tried
    )
    return trial_seconds + again_seconds + (steps - TRIAL_STEPS * len(tried)) * steady[best.mode]


def fixed_totals(
    trials: Sequence[Trial], steady: Mapping[CompileMode, float], steps: int
) -> dict[CompileMode, float]:
    """Seconds of a run of so many steps, in each mode by itself.

    The first trial, of `default`, has paid for what the other modes compile like it.
    """
    first_seconds = trials[0].compile_seconds
    return {
        trial.mode: steps * steady[trial.mode]
        + (0.0 if trial.mode == "off" else max(first_seconds, trial.compile_seconds))
        for trial in trials
        if trial.mode in steady
    }
