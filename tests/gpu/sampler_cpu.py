"""`python -m tests.gpu.sampler_cpu`: what the sampler costs, over a GPU that it reads as eight."""

import sys
import tempfile
from pathlib import Path
from time import monotonic, sleep

from tests.bench.process_usage import cpu_seconds
from tests.gpu.eightfold_sampler import GPUS
from tests.gpu.kept import bar, keep
from tests.gpu.observed import observed

START_SECONDS = 6.0
SECONDS = 40.0
CORE_BAR = 0.02


def main() -> int:
    with (
        tempfile.TemporaryDirectory() as folder,
        observed(Path(folder), "tests.gpu.eightfold_sampler") as seen,
    ):
        sleep(START_SECONDS)
        before, began = cpu_seconds(seen.sampler_pid), monotonic()
        sleep(SECONDS)
        ratio = (cpu_seconds(seen.sampler_pid) - before) / (monotonic() - began)
        gpus = seen.gpus()
    bars = {
        "GPUs that it tells of": bar(gpus, "==", GPUS),
        "share of a core": bar(ratio, "<=", CORE_BAR),
    }
    return keep("sampler_cpu", 1, {"bars": bars})


if __name__ == "__main__":
    sys.exit(main())
