"""`python -m tests.bench.fake_sampler SOCKET GPUS`: a sampler over GPUs that replay readings."""

import os
import sys

from kopeck_exporter.sampler import Sampler, report_until_orphaned
from tests.gpus import ReplayDriver, ReplayGpu


def main() -> int:
    gpus = [ReplayGpu(index, f"GPU-{index}") for index in range(int(sys.argv[2]))]
    report_until_orphaned(Sampler("trainer", lambda: ReplayDriver(gpus)), sys.argv[1], os.getppid())
    return 0


if __name__ == "__main__":
    sys.exit(main())
