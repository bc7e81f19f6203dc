"""`python -m tests.gpu.step_speed GPUS MICRO_BATCH PEER`: tokens per second, beside torchtitan's.

The peer runs in each of its ways, ours, and the peer's faster way again; PEER is the folder with
torchtitan. All figures are per GPU.
"""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.gpu import ours
from tests.gpu.kept import bar, keep, say
from tests.gpu.torchtitan import Peer

SPEEDUP_BAR = {1: 1.03, 2: 1.05}
"""By GPUs."""
OVERLAP_BAR = 0.89


def main() -> int:
    gpus, micro_batch, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    peer = Peer(folder=folder, gpus=gpus, micro_batch=micro_batch, variables={})
    peers, own = peer.around(lambda: _own(gpus, micro_batch))
    peer_speed = max(run.tokens_per_second for run in peers)
    peer_memory = min(run.peak_reserved_gib for run in peers)
    bars = {
        "speedup": bar(own["tokens_per_second"] / peer_speed, ">=", SPEEDUP_BAR[gpus]),
        "peak GiB": bar(own["peak_reserved_gib"], "<=", peer_memory),
    }
    if gpus > 1:
        waits_least = min(
            own["profiles"], key=lambda profile: profile["share_by_kind"]["communication"]
        )
        overlap = waits_least["overlap"]
        bars["overlap of the rank that waits least"] = bar(overlap, ">=", OVERLAP_BAR)
    content = {"ours": own, "peer": [asdict(run) for run in peers], "bars": bars}
    return keep(f"step_speed_{gpus}_gpus_micro_batch_{micro_batch}", gpus, content)


def _own(gpus: int, micro_batch: int) -> dict[str, Any]:
    sizes = {"globalBatchSize": gpus * micro_batch, "microBatchSize": micro_batch}
    run = ours.train(gpus, training=sizes)
    own = {
        "tokens_per_second": micro_batch * ours.SEQUENCE / run.step_seconds,
        "peak_reserved_gib": run.peak_reserved_gib,
        "profiles": run.profiles,
    }
    say(f"ours: {own['tokens_per_second']:,.0f} tokens/s, {run.peak_reserved_gib:.1f} GiB")
    return own


if __name__ == "__main__":
    sys.exit(main())
