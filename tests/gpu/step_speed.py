"""`python -m tests.gpu.step_speed GPUS PEER MICRO_BATCH…`: tokens per second, beside torchtitan's.

For each micro-batch the peer runs, ours, and the peer again, in the faster of its two ways; PEER
is the folder with torchtitan. The last line on standard output has all figures, each per GPU.
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from tests.gpu import ours, torchtitan

SPEEDUP_BAR = {1: 1.03, 2: 1.05}
"""By GPUs."""


def main() -> int:
    gpus, peer, micro_batches = int(sys.argv[1]), Path(sys.argv[2]), map(int, sys.argv[3:])
    results = {micro_batch: _compared(gpus, micro_batch, peer) for micro_batch in micro_batches}
    bars = {name: bar for each in results.values() for name, bar in each.pop("bars").items()}
    print(
        json.dumps(
            {
                "bench": f"step_speed_{gpus}",
                "device": f"{gpus} × {torch.cuda.get_device_name()}, torch {torch.__version__}",
                "ours": {size: each["ours"] for size, each in results.items()},
                "peer": {size: each["peer"] for size, each in results.items()},
                "bars": bars,
            }
        )
    )
    return 0 if all(bar["held"] for bar in bars.values()) else 1


def _compared(gpus: int, micro_batch: int, folder: Path) -> dict[str, Any]:
    ways = [False, True] if gpus == 1 else [True]
    peers = [_shown(torchtitan.train(folder, gpus, micro_batch, shards=way)) for way in ways]
    own = _shown(ours.train(gpus, micro_batch))
    fastest = max(peers, key=lambda run: run.tokens_per_second)
    shards = fastest.way == "FSDP2"
    peers.append(_shown(torchtitan.train(folder, gpus, micro_batch, shards=shards)))
    peer_speed = max(run.tokens_per_second for run in peers)
    peer_memory = min(run.peak_reserved_gib for run in peers if run.way == fastest.way)
    return {
        "ours": asdict(own),
        "peer": [asdict(run) for run in peers],
        "bars": {
            f"speedup at micro-batch {micro_batch}": _bar(
                own.tokens_per_second / peer_speed, ">=", SPEEDUP_BAR[gpus]
            ),
            f"peak GiB at micro-batch {micro_batch}": _bar(
                own.peak_reserved_gib, "<=", peer_memory
            ),
        },
    }


def _shown(run: Any) -> Any:
    speed, memory = run.tokens_per_second, run.peak_reserved_gib
    print(f"{type(run).__module__}: {speed:,.0f} tokens/s, {memory:.1f} GiB", file=sys.stderr)
    return run


def _bar(value: float, operator: str, bar: float) -> dict[str, Any]:
    held = value >= bar if operator == ">=" else value <= bar
    return {"value": round(value, 3), "op": operator, "bar": bar, "held": held}


if __name__ == "__main__":
    sys.exit(main())
