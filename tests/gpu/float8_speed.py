"""`python -m tests.gpu.float8_speed PEER`: 8-bit products on a wide model, beside torchtitan's.

Both scale each tensor by its largest number and leave the head in bf16. The peer runs in each of
its ways, ours, and the peer's faster way again. Ours runs in bf16 too, to show what the 8 bits
save, and that the losses stay.
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.gpu import ours
from tests.gpu.kept import bar, keep, say
from tests.gpu.torchtitan import Peer

MICRO_BATCH = 4
SIZES = {"dim": 4096, "layers": 8, "heads": 32, "groups": 8, "hidden": 14336}
"""Of the blocks of a Llama with 8 billion parameters."""
PEER_SIZES = {
    "dim": 4096,
    "n_layers": 8,
    "n_heads": 32,
    "n_kv_heads": 8,
    "ffn_dim_multiplier": 1.3,
    "multiple_of": 1024,
}
PEER_OPTIONS = (
    "--model.converters quantize.linear.float8 --quantize.linear.float8.filter_fqns output"
)
LEARNING_RATE = 3e-5
SAME_LOSS = 0.01
"""Relative difference of all losses from those of bf16."""


def main() -> int:
    peer = Peer(
        folder=Path(sys.argv[1]),
        gpus=1,
        micro_batch=MICRO_BATCH,
        variables={"PEER_SIZES": json.dumps(PEER_SIZES), "PEER_OPTIONS": PEER_OPTIONS},
    )
    peers, fp8 = peer.around(lambda: _own("fp8"))
    bf16 = _own("bf16")
    differences = [
        abs(one - other) / other for one, other in zip(fp8["losses"], bf16["losses"], strict=True)
    ]
    peer_speed = max(run.tokens_per_second for run in peers)
    bars = {
        "speedup": bar(fp8["tokens_per_second"] / peer_speed, ">=", 1.0),
        "faster than bf16": bar(fp8["tokens_per_second"] / bf16["tokens_per_second"], ">=", 1.0),
        "largest difference of losses": bar(max(differences), "<=", SAME_LOSS),
    }
    content = {
        "ours": {"fp8": fp8, "bf16": bf16},
        "peer": [asdict(run) for run in peers],
        "bars": bars,
    }
    return keep("float8_speed", 1, content)


def _own(precision: str) -> dict[str, Any]:
    training = {
        "globalBatchSize": MICRO_BATCH,
        "microBatchSize": MICRO_BATCH,
        "precision": precision,
    }
    parameters = SIZES | {"learning_rate": LEARNING_RATE}
    run = ours.train(1, parameters=parameters, training=training)
    speed = MICRO_BATCH * ours.SEQUENCE / run.step_seconds
    say(f"{precision}: {speed:,.0f} tokens/s, {run.peak_reserved_gib:.1f} GiB")
    return {
        "tokens_per_second": speed,
        "peak_reserved_gib": run.peak_reserved_gib,
        "losses": [round(loss, 4) for loss in run.losses],
        "profile": run.profiles[0],
    }


if __name__ == "__main__":
    sys.exit(main())
