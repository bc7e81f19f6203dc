"""`python -m tests.gpu.policy_table MODEL USD_PER_HOUR`: each compile mode's price, and `auto`'s.

`auto` runs from a cold cache, long enough for all modes to be tried; its trials say what each mode
takes to compile. Then each mode runs by itself, which says what its steps take once training is
under way. Totals of runs of other lengths are arithmetic on these.
"""

import os
import re
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path
from time import monotonic
from typing import Any

from kopeck_trainer import exit_codes
from kopeck_trainer.compilation.policy import TRIAL_STEPS, WARM_RATIO, Trial, cheapest, next_mode
from kopeck_trainer.config import CompileMode
from kopeck_trainer.run_directory import read_json
from tests.gpu import ours
from tests.gpu.kept import bar, keep, say
from tests.unit.trainer.local_workers import LocalJob
from tests.waiting import eventually

MODELS: dict[str, dict[str, Any]] = {
    "byte_llama": {
        "entrypoint": "byte_llama:build",
        "parameters": {"dim": 256, "layers": 6, "heads": 4, "sequenceLength": 512},
        "training": {"globalBatchSize": 16, "microBatchSize": 16},
    },
    "llama": {
        "entrypoint": "tests.gpu.llama:build",
        "parameters": {"layers": 4, "vocabulary": 32000},
        "training": {"globalBatchSize": 4, "microBatchSize": 4},
    },
}
LONG_STEPS = 10_000_000
"""As many as the trials of all modes are a small part of."""
RUN_MINUTES = (10, 60, 600, 6000)
"""Of the runs whose totals are compared, beside the long one; in mode `default`."""
OVER_BEST = 1.01
SEARCH_SECONDS = 480
MOST_ATTEMPTS = 4


def main() -> int:
    name, usd_per_hour = sys.argv[1], Decimal(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = f"{folder}/inductor"  # of this measurement alone
        job = LocalJob(Path(folder), {})
        search = _search(job, MODELS[name])
        trials = search.trials
        measured = [each.mode for each in trials if each.step_seconds is not None]
        steady = {mode: _steady_seconds(MODELS[name], mode) for mode in measured}
    lengths = [int(60 * minutes / steady["default"]) for minutes in RUN_MINUTES]
    totals = {
        LONG_STEPS: search.seconds + (LONG_STEPS - search.steps) * steady[search.chosen],
        **{steps: _auto_total(trials, steady, steps) for steps in lengths},
    }
    rows = [
        {
            "steps": steps,
            "auto_seconds": round(total, 2),
            "auto_usd": _usd(total, usd_per_hour),
            **_fixed(trials, steady, steps, usd_per_hour),
        }
        for steps, total in sorted(totals.items())
    ]
    bars = {
        f"over the best mode, {row['steps']} steps": bar(
            round(row["auto_seconds"] / row["best_seconds"], 4), "<=", OVER_BEST
        )
        for row in rows
    }
    content = {
        "usd_per_hour": str(usd_per_hour),
        "trials": [asdict(trial) for trial in trials],
        "chosen": search.chosen,
        "search": {"seconds": round(search.seconds, 1), "steps": search.steps},
        "step_seconds": steady,
        "totals": rows,
        "bars": bars,
    }
    return keep(f"policy_table_{name}", 1, content)


@dataclass(frozen=True, kw_only=True)
class Search:
    """What `auto` did from its first compilation until its choice was warm."""

    trials: list[Trial]
    chosen: CompileMode
    seconds: float
    steps: int


def _search(job: LocalJob, model: dict[str, Any]) -> Search:
    """In as many attempts as there are modes that end their process."""
    cache = job.folder / "cache"
    training = {"steps": LONG_STEPS, "compile": {"mode": "auto", "cache": str(cache)}}
    config = {**model, "training": training | model["training"]}
    started_at = monotonic()
    for attempt in range(MOST_ATTEMPTS):
        [worker] = job.start(config, attempt=attempt)

        def begins() -> None:
            assert "compiling the blocks" in worker.output, worker.output  # noqa: B023

        def ends() -> None:
            assert worker.process.poll() is not None or "  compute" in worker.output  # noqa: B023

        if attempt == 0:
            eventually(begins, seconds=SEARCH_SECONDS)
            started_at = monotonic()
        eventually(ends, seconds=SEARCH_SECONDS)
        say(worker.output)
        if worker.process.poll() != exit_codes.MODE_FAILED:
            break
    seconds = monotonic() - started_at
    steps = int(re.findall(r"^step (\d+)/", worker.output, re.MULTILINE)[-1])
    worker.process.send_signal(signal.SIGTERM)
    worker.exit_code()
    [file] = cache.glob("decision-*.json")
    record = read_json(file)
    return Search(
        trials=[Trial(**each) for each in record["trials"]],
        chosen=record["mode"],
        seconds=seconds,
        steps=steps,
    )


def _steady_seconds(model: dict[str, Any], mode: CompileMode) -> float:
    seconds = ours.train(
        1,
        entrypoint=model["entrypoint"],
        parameters=model["parameters"],
        training=model["training"] | {"compile": {"mode": mode}},
    ).step_seconds
    say(f"{mode}: {seconds * 1000:.4g} ms a step")
    return seconds


def _auto_total(trials: Sequence[Trial], steady: dict[CompileMode, float], steps: int) -> float:
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


def _fixed(
    trials: Sequence[Trial], steady: dict[CompileMode, float], steps: int, usd_per_hour: Decimal
) -> dict[str, Any]:
    """The totals of each mode by itself.

    The first trial, of `default`, has paid for what the other modes compile like it.
    """
    first_seconds = trials[0].compile_seconds
    seconds = {
        trial.mode: steps * steady[trial.mode]
        + (0.0 if trial.mode == "off" else max(first_seconds, trial.compile_seconds))
        for trial in trials
        if trial.mode in steady
    }
    return {
        "best_seconds": round(min(seconds.values()), 2),
        "usd_by_mode": {mode: _usd(each, usd_per_hour) for mode, each in seconds.items()},
    }


def _usd(seconds: float, usd_per_hour: Decimal) -> float:
    return round(seconds / 3600 * float(usd_per_hour), 4)


if __name__ == "__main__":
    sys.exit(main())
