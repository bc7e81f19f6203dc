"""The peer: torchtitan 0.2.2 on the same model, from a folder that holds it and its `run.sh`.

Of the variables that `run.sh` knows, PEER_FSDP makes it shard on one GPU; PEER_SIZES, as JSON, and
PEER_OPTIONS change the model and the command line.
"""

import os
import re
import statistics
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.gpu.kept import say

_FIGURES = re.compile(r"memory: *([\d.]+)GiB.*tps: *([\d,]+)")


@dataclass(frozen=True, kw_only=True)
class PeerRun:
    """As torchtitan prints it, for the last steps. Tokens are counted per GPU."""

    shards: bool
    tokens_per_second: float
    peak_reserved_gib: float


@dataclass(frozen=True, kw_only=True)
class Peer:
    """Compiled, on `gpus` GPUs."""

    folder: Path
    gpus: int
    micro_batch: int
    variables: dict[str, str]

    def around(self, own: Callable[[], dict[str, Any]]) -> tuple[list[PeerRun], dict[str, Any]]:
        """The peer, `own`, and the peer again, so that a GPU that warms up favours neither.

        On one GPU torchtitan by itself does not shard, but can: both ways run before, and the
        faster one after.
        """
        ways = (False, True) if self.gpus == 1 else (True,)
        runs = [self.train(shards=shards) for shards in ways]
        measured = own()
        fastest = max(runs, key=lambda run: run.tokens_per_second)
        return [*runs, self.train(shards=fastest.shards)], measured

    def train(self, *, shards: bool) -> PeerRun:
        """Raises ValueError if it failed."""
        forced = {"PEER_FSDP": str(int(shards))} if self.gpus == 1 else {}
        output = subprocess.run(
            ["bash", self.folder / "run.sh", str(self.gpus), str(self.micro_batch), "compile"],
            env={**os.environ, **self.variables, **forced},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        figures = _FIGURES.findall(output)
        if not figures:
            raise ValueError(output)
        run = PeerRun(
            shards=shards,
            tokens_per_second=statistics.median(float(tps.replace(",", "")) for _, tps in figures),
            peak_reserved_gib=max(float(memory) for memory, _ in figures),
        )
        way = "sharded" if shards else "whole"
        say(f"peer, {way}: {run.tokens_per_second:,.0f} tokens/s, {run.peak_reserved_gib:.1f} GiB")
        return run
