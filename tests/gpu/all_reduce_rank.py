"""`python -m tests.gpu.all_reduce_rank FOLDER [BYTES ...]`: a rank that sums over all GPUs.

It leaves FOLDER/RANK.json: where it runs, and the median seconds of a sum by its bytes.
"""

import json
import os
import statistics
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import distributed

WARM = 5
TIMED = 20


def main() -> None:
    folder, sizes = Path(sys.argv[1]), [int(word) for word in sys.argv[2:]]
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    affinity = sorted(os.sched_getaffinity(0))
    torch.cuda.set_device(device)
    distributed.init_process_group("nccl")
    sums = {size: _seconds(size, device) for size in sizes or [1024]}
    found: dict[str, Any] = {
        "gpu": f"GPU-{torch.cuda.get_device_properties(device).uuid}",
        "cpus": affinity,
        "NCCL_TOPO_FILE": os.environ.get("NCCL_TOPO_FILE"),
        "nccl": ".".join(map(str, torch.cuda.nccl.version())),
        "seconds": sums,
    }
    (folder / f"{distributed.get_rank()}.json").write_text(json.dumps(found))
    distributed.destroy_process_group()


def _seconds(size_bytes: int, device: torch.device) -> float:
    """Of one sum, by the GPU's clock."""
    tensor = torch.ones(size_bytes // 4, device=device)
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(WARM + TIMED + 1)]
    for mark in marks:
        mark.record()
        distributed.all_reduce(tensor)
    torch.cuda.synchronize()
    pairs = list(pairwise(marks))[WARM:]
    return statistics.median(a.elapsed_time(b) for a, b in pairs) / 1000


if __name__ == "__main__":
    main()
