"""`python -m tests.gpu.loss_curve`: the losses of a hundred steps, compiled and eager.

Eager runs twice, the second time in half micro-batches: that sums in another order, and how far it
leads away from the first is what rounding alone does. The learning rate is small, so that
differences do not feed themselves.
"""

import sys

from tests.gpu import ours
from tests.gpu.kept import bar, keep, say

STEPS = 100
GLOBAL_BATCH = 4
LEARNING_RATE = 3e-5
TIMES_ROUNDING = 2.0
"""How much further than rounding the compiled losses may lead away."""
ROUNDING = 1e-3
"""Relative, at least: the tolerance of one batch."""


def main() -> int:
    curves = {
        "compiled": _losses("default", GLOBAL_BATCH),
        "eager": _losses("off", GLOBAL_BATCH),
        "eager, half micro-batches": _losses("off", GLOBAL_BATCH // 2),
    }
    compiled, eager, regrouped = curves.values()
    rounding = _largest_difference(regrouped, eager)
    bars = {
        "largest relative difference": bar(
            _largest_difference(compiled, eager), "<=", TIMES_ROUNDING * max(rounding, ROUNDING)
        )
    }
    return keep("loss_curve", 1, {"losses": curves, "rounding": rounding, "bars": bars})


def _losses(mode: str, micro_batch: int) -> list[float]:
    training = {
        "steps": STEPS,
        "globalBatchSize": GLOBAL_BATCH,
        "microBatchSize": micro_batch,
        "compile": {"mode": mode},
    }
    run = ours.train(1, parameters={"learning_rate": LEARNING_RATE}, training=training)
    say(f"{mode}, micro-batch {micro_batch}: {run.losses[0]:.4f} to {run.losses[-1]:.4f}")
    return [round(loss, 5) for loss in run.losses]


def _largest_difference(one: list[float], other: list[float]) -> float:
    return max(abs(a - b) / b for a, b in zip(one, other, strict=True))


if __name__ == "__main__":
    sys.exit(main())
