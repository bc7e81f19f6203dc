"""`python -m tests.gpu.modes_agree`: a small model's losses in each compile mode.

CUDA graphs replay into the same memory in every micro-batch, which only several of them and several
steps can show to be right.
"""

import sys

from kopeck_trainer.config import CompileMode
from tests.gpu import ours
from tests.gpu.kept import bar, keep, say

MODES: tuple[CompileMode, ...] = ("off", "default", "reduce-overhead")
STEPS = 60
DIFFERENCE = 5e-3
"""Relative, from eager, in bf16."""


def main() -> int:
    losses = {mode: _losses(mode) for mode in MODES}
    bars = {
        f"{mode} differs from eager": bar(
            max(abs(a - b) / b for a, b in zip(each, losses["off"], strict=True)), "<=", DIFFERENCE
        )
        for mode, each in losses.items()
    }
    return keep("modes_agree", 1, {"losses": losses, "bars": bars})


def _losses(mode: CompileMode) -> list[float]:
    run = ours.train(
        1,
        entrypoint="byte_llama:build",
        parameters={"dim": 256, "sequenceLength": 256, "learningRate": 3e-4},
        training={
            "steps": STEPS,
            "globalBatchSize": 32,
            "microBatchSize": 8,
            "compile": {"mode": mode},
        },
    )
    say(f"{mode}: {run.losses[0]:.4f} to {run.losses[-1]:.4f}")
    return [round(loss, 5) for loss in run.losses]


if __name__ == "__main__":
    sys.exit(main())
