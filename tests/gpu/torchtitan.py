"""The peer: torchtitan 0.2.2 on the same model, from a folder that holds it and its `run.sh`.

The variables PEER_SIZES and PEER_OPTIONS change the model, as JSON, and the command line.
"""

import os
import re
import statistics
import subprocess
from dataclasses import dataclass
from pathlib import Path

_FIGURES = re.compile(r"memory: *([\d.]+)GiB.*tps: *([\d,]+)")


@dataclass(frozen=True, kw_only=True)
class PeerRun:
    """As torchtitan prints it, for the last steps. Tokens are counted per GPU."""

    tokens_per_second: float
    peak_reserved_gib: float


def train(folder: Path, gpus: int, micro_batch: int, **variables: str) -> PeerRun:
    """Compiled; torchtitan by itself does not shard on one GPU. Raises ValueError if it failed."""
    output = subprocess.run(
        ["bash", folder / "run.sh", str(gpus), str(micro_batch), "compile"],
        env={**os.environ, **variables, **({"PEER_FSDP": "0"} if gpus == 1 else {})},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    figures = _FIGURES.findall(output)
    if not figures:
        raise ValueError(output)
    return PeerRun(
        tokens_per_second=statistics.median(float(tps.replace(",", "")) for _, tps in figures),
        peak_reserved_gib=max(float(memory) for memory, _ in figures),
    )
