"""`python -m tests.gpu.eightfold_sampler SOCKET`: reads one GPU as if it were eight."""

import os
import sys
from collections.abc import Sequence

import pynvml

from kopeck_exporter.nvml import Board, Nvml, NvmlGpu
from kopeck_exporter.sampler import Sampler, report_until_orphaned

GPUS = 8


class Eightfold(Nvml):
    """Each of eight GPUs is the first one, under a name of its own."""

    def gpus(self) -> Sequence[NvmlGpu]:
        handle = pynvml.nvmlDeviceGetHandleByIndex(0)
        board = Board(handle, pynvml.nvmlDeviceGetUUID(handle))
        named = [NvmlGpu(index, handle, board, None, self.turns) for index in range(GPUS)]
        for gpu in named:
            gpu.uuid = f"{gpu.uuid}-{gpu.index}"
        return named


def main() -> int:
    report_until_orphaned(Sampler("trainer", Eightfold), sys.argv[1], os.getppid())
    return 0


if __name__ == "__main__":
    sys.exit(main())
