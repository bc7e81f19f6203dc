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
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path
from time import monotonic
from typing import Any

from kopeck_trainer import exit_codes
from kopeck_trainer.compilation.policy import Trial
from kopeck_trainer.config import CompileMode
from kopeck_trainer.run_directory import read_json
from tests.gpu import ours
from tests.gpu.kept import bar, keep, say
from tests.gpu.totals import OVER_BEST, RUN_MINUTES, auto_total, fixed_totals
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
        **{steps: auto_total(trials, steady, steps) for steps in lengths},
    }
    rows = [
        {
            "steps": steps,
            "auto_seconds": round(total, 2),
            "auto_usd": _usd(total, usd_per_hour),
            **_best(fixed_totals(trials, steady, steps), usd_per_hour),
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


def _best(seconds: dict[CompileMode, float], usd_per_hour: Decimal) -> dict[str, Any]:
    return {
        "best_seconds": round(min(seconds.values()), 2),
        "usd_by_mode": {mode: _usd(each, usd_per_hour) for mode, each in seconds.items()},
    }


def _usd(seconds: float, usd_per_hour: Decimal) -> float:
    return round(seconds / 3600 * float(usd_per_hour), 4)


if __name__ == "__main__":
    sys.exit(main())
