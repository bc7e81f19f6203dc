"""`python -m tests.gpu.sampler`: what the sampler says of a real GPU, idle and at work.

SM utilisation against the kernels of a trace, and energy against power. Five minutes.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from tests.gpu.growth_rate import Scrape, falls, growth_per_second
from tests.gpu.kept import bar, keep, say
from tests.gpu.observed import Observed, Values, observed

IDLE_SECONDS = 55.0
LAG_SECONDS = 6.0
"""A value that is scraped is of a second that began no longer ago: a second between two readings,
as long until it is sent and received, two until the page is written."""

LOADS = ("eager", "compiled", "paused")
RATIOS = (
    "kopeck_sm_utilization_ratio",
    "kopeck_sm_occupancy_ratio",
    "kopeck_tensor_active_ratio",
    "kopeck_dram_active_ratio",
    "kopeck_gpu_utilization_ratio",
)
OTHERS = ("kopeck_gpu_power_watts", "kopeck_gpu_sm_clock_hertz", "kopeck_gpu_temperature_celsius")
POWER, ENERGY = "kopeck_gpu_power_watts", "kopeck_gpu_energy_joules_total"
THROTTLED = "kopeck_gpu_throttled_seconds_total"
COUNTERS = (ENERGY, THROTTLED, "kopeck_gpu_pcie_bytes_total")
UNEVEN = 0.1
"""Of a rate: a new value is seen up to 2 or 3 s after it was read, by when a page is written; the
readings that are compared lie 30 s apart, or more."""


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        readings = _readings(Path(folder))
    bars = _utilization_bars(readings) | _counter_bars(readings)
    return keep("sampler", 1, {"readings": readings, "bars": bars})


def _utilization_bars(readings: dict[str, Values]) -> dict[str, Any]:
    """Where a GPU has the counters, no value is a fault."""
    utilization = {
        load: readings[load][RATIOS[0]] for load in ("idle", *LOADS) if RATIOS[0] in readings[load]
    }
    absent = bar(len(LOADS) + 1 - len(utilization), "==", 0)
    if not absent["held"]:
        return {"loads without SM utilisation": absent}
    above = [utilization[load] - readings[load]["busy_ratio"] for load in LOADS]
    tensor = [readings[load].get(RATIOS[2], 0.0) - each for load, each in utilization.items()]
    return {
        "loads without SM utilisation": absent,
        "SM utilisation when idle": bar(utilization["idle"], "<=", 0.01),
        "SM utilisation at work": bar(min(utilization[load] for load in LOADS), ">=", 0.1),
        "SM utilisation beyond the kernels' share": bar(max(above), "<=", 0.03),
        "SM utilisation paused over eager": bar(
            utilization["paused"] / utilization["eager"], "<=", 0.75
        ),
        "tensor activity beyond SM utilisation": bar(max(tensor), "<=", 0.0),
    }


def _counter_bars(readings: dict[str, Values]) -> dict[str, Any]:
    """What cannot be, however a GPU is: counters that fall, more throttling than time."""
    of_loads = [readings[load] for load in ("idle", *LOADS)]
    throttled = [
        rate for each in of_loads for name, rate in each.items() if name.startswith(THROTTLED)
    ]
    energy = [
        each[_rate_of(ENERGY)] / each[_steady(POWER)] for each in of_loads if _has_energy(each)
    ]
    return {
        "counters that went back": bar(sum(each["falls"] for each in of_loads), "==", 0),
        "throttled seconds per second": bar(max(throttled, default=0.0), "<=", 1 + UNEVEN),
        "loads without an energy rate": bar(len(of_loads) - len(energy), "==", 0),
        "energy rate beside mean power": bar(
            max((abs(each - 1) for each in energy), default=0.0), "<=", UNEVEN
        ),
    }


def _has_energy(reading: Values) -> bool:
    return {_rate_of(ENERGY), _steady(POWER)} <= reading.keys()


def _rate_of(name: str) -> str:
    return f"{name} per second"


def _steady(name: str) -> str:
    """Of the same seconds as the rates of counters, which begin before the trace."""
    return f"{name} beside counters"


def _readings(folder: Path) -> dict[str, Values]:
    """Means by load; `busy_ratio` is the share of time with a kernel, by a trace."""
    with observed(folder) as seen:
        began = monotonic()
        sleep(IDLE_SECONDS)
        ended = monotonic()
        readings = {
            "idle": _means(seen, began + LAG_SECONDS, ended)
            | _growth(seen, began + LAG_SECONDS, ended)
        }
        for load in LOADS:
            told = _run_load(load)
            readings[load] = {
                "busy_ratio": round(told["busy_ratio"], 4),
                **_means(seen, told["began"] + LAG_SECONDS, told["ended"]),
                **_growth(seen, told["at_work"] + LAG_SECONDS, told["ended"]),
            }
            say(f"{load}: {readings[load]}")
        errors = {name: value for name, value in seen.values().items() if "_errors_" in name}
    return readings | {"errors": {name: value for name, value in errors.items() if value}}


def _means(seen: Observed, began: float, ended: float) -> Values:
    scraped = seen.between(began, ended)
    return {
        name: round(statistics.fmean(values[name] for values in scraped), 4)
        for name in (*RATIOS, *OTHERS)
        if all(name in values for values in scraped)
    }


def _growth(seen: Observed, began: float, ended: float) -> Values:
    """Rates of counters that moved, how often one fell, and the mean power meanwhile."""
    counters: dict[str, list[Scrape]] = {}
    watts = []
    for moment, values in seen.scrapes:
        if not began <= moment <= ended:
            continue
        watts += [values[POWER]] if POWER in values else []
        for name, value in values.items():
            if name.startswith(COUNTERS):
                counters.setdefault(name, []).append((moment, value))
    rates = {name: growth_per_second(scrapes) for name, scrapes in counters.items()}
    known = {_rate_of(name): round(rate, 4) for name, rate in rates.items() if rate is not None}
    power = {_steady(POWER): round(statistics.fmean(watts), 4)} if watts else {}
    return known | power | {"falls": sum(map(falls, counters.values()))}


def _run_load(mode: str) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.gpu.gpu_load", mode]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    told: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return told


if __name__ == "__main__":
    sys.exit(main())
