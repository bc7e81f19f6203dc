"""`python -m tests.gpu.series PEER LOGS [CHECK…]`: the checks on GPUs, or those named, in a row.

First those that take two GPUs, then those of one GPU side by side, each on its own. PEER is the
folder with torchtitan. LOGS, a folder, gets the output of each check and the result that it wrote.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from pathlib import Path
from queue import SimpleQueue
from time import monotonic, time

import torch

from tests.gpu.kept import RESULTS, say

OF_TWO_GPUS = {
    "window_cost": ["window_cost"],
    "step_speed_2_8": ["step_speed", "2", "8", "PEER"],
    "step_speed_2_4": ["step_speed", "2", "4", "PEER"],
    "two_ranks": ["two_ranks"],
    "profile_windows": ["profile_windows"],
}
OF_ONE_GPU = {
    "sampler": ["sampler"],
    "step_speed_1_4": ["step_speed", "1", "4", "PEER"],
    "step_speed_1_8": ["step_speed", "1", "8", "PEER"],
    "loss_curve": ["loss_curve"],
    "smoke": ["smoke"],
    "sampler_cpu": ["sampler_cpu"],
}
MOST_SECONDS = 420
"""Of one check, which is ended then."""

PATHS = ("operator", "exporters", "trainer", "examples", ".")
"""Of the repository, from which the checks are started."""


def main() -> int:
    peer, logs, *named = sys.argv[1:]
    folder = Path(logs)
    folder.mkdir(parents=True, exist_ok=True)
    check = partial(_check, Path(peer), folder)
    gpus = range(torch.cuda.device_count())
    known = {*OF_TWO_GPUS, *OF_ONE_GPU}
    wanted = set(named) or known
    if unknown := wanted - known:
        say(f"{', '.join(sorted(unknown))}: no such check; name some of {', '.join(sorted(known))}")
        return 2
    held = [
        check(name, arguments, gpus)
        for name, arguments in OF_TWO_GPUS.items()
        if name in wanted and len(gpus) > 1
    ]
    free: SimpleQueue[int] = SimpleQueue()
    for gpu in gpus:
        free.put(gpu)

    def on_one(name: str) -> bool:
        gpu = free.get()
        try:
            return check(name, OF_ONE_GPU[name], [gpu])
        finally:
            free.put(gpu)

    with ThreadPoolExecutor(len(gpus)) as side_by_side:
        held += side_by_side.map(on_one, [name for name in OF_ONE_GPU if name in wanted])
    return 0 if all(held) else 1


def _check(
    peer: Path, logs: Path, name: str, arguments: Sequence[str], gpus: Sequence[int]
) -> bool:
    """Whether its bars held. Says so."""
    began, began_at = monotonic(), time()
    module, *rest = (str(peer) if word == "PEER" else word for word in arguments)
    own = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    variables = {
        "CUDA_VISIBLE_DEVICES": ",".join(map(str, gpus)),
        "OUT": str(logs),  # where the peer's own log goes
        "PYTHONFAULTHANDLER": "1",
        "PYTHONPATH": os.pathsep.join(map(os.path.abspath, chain(filter(None, own), PATHS))),
    }
    with (logs / f"{name}.log").open("wb") as output:
        done = subprocess.run(
            ["timeout", str(MOST_SECONDS), sys.executable, "-m", f"tests.gpu.{module}", *rest],
            env=os.environ | variables,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    for result in RESULTS.glob("*.json"):
        if result.stat().st_mtime >= began_at:
            shutil.copy(result, logs)
    how = {0: "held", 1: "not held, or failed", 124: "ended, for it took too long"}
    say(f"{name}: {how.get(done.returncode, done.returncode)}, in {monotonic() - began:.0f} s")
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
