"""Our Triton kernels compute what torch does. Triton's interpreter runs them on the CPU."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest
import torch
from torch.nn import functional

from kopeck_trainer.windows.recorder import MARK

STEPS = 3
BETAS = (0.9, 0.99)


def adamw_difference() -> dict[str, Any]:
    from kopeck_trainer.adamw_kernel import adamw  # noqa: PLC0415  after the interpreter is chosen

    torch.manual_seed(0)
    master, working = torch.randn(1500), torch.zeros(1500, dtype=torch.bfloat16)
    averages = torch.zeros(1500), torch.zeros(1500)
    expected = torch.nn.Parameter(master.clone())
    optimizer = torch.optim.AdamW([expected], lr=0.1, betas=BETAS, weight_decay=0.1)
    for step in range(1, STEPS + 1):
        gradient = torch.randn(1500).bfloat16()
        expected.grad = gradient.float() * 0.5
        optimizer.step()
        corrections = torch.tensor([[0.0, 1 - beta**step] for beta in BETAS])
        for factor in (0.5, torch.nan):  # the second one changes nothing
            adamw(
                master,
                gradient,
                averages,
                working,
                factor=torch.tensor(factor),
                corrections=corrections,
                index=1,
                learning_rate=0.1,
                betas=BETAS,
                epsilon=1e-8,
                weight_decay=0.1,
            )
    return {
        "difference": (master - expected).abs().max().item(),
        "working_ratio": (working.float() / master - 1).abs().max().item(),
    }


def cross_entropy_difference() -> dict[str, Any]:
    from kopeck_trainer.cross_entropy_kernel import losses_and_gradient, scale  # noqa: PLC0415

    torch.manual_seed(0)
    logits, targets = torch.randn(5, 5000), torch.tensor([3, 4999, -100, 0, 64])
    expected = logits.clone().requires_grad_()
    rows = functional.cross_entropy(expected, targets, reduction="none")
    torch.autograd.backward(rows.sum() * 2)
    losses = losses_and_gradient(logits, targets)
    scale(logits, torch.tensor(2.0))
    assert expected.grad is not None
    return {
        "difference": (losses - rows).abs().max().item(),
        "gradient_difference": (logits - expected.grad).abs().max().item(),
    }


def what_a_mark_does() -> dict[str, Any]:
    from kopeck_trainer.window_mark_kernel import kopeck_window_mark, mark  # noqa: PLC0415

    anything = torch.ones(1)
    mark(anything)
    return {"name": kopeck_window_mark.__name__, "left": anything.item()}


def interpreted(function: str) -> dict[str, Any]:
    """In a process of its own: the choice is made when Triton is imported."""
    program = f"import json; from {__name__} import {function}; print(json.dumps({function}()))"
    output = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    result: dict[str, Any] = json.loads(output)
    return result


@pytest.mark.skipif(sys.platform != "linux", reason="Triton is there for Linux alone")
def test_adamw_is_torchs_and_nan_changes_nothing() -> None:
    found = interpreted("adamw_difference")
    assert found["difference"] < 1e-5
    assert found["working_ratio"] < 2**-7  # the interpreter cuts where a GPU rounds


@pytest.mark.skipif(sys.platform != "linux", reason="Triton is there for Linux alone")
def test_cross_entropy_is_torchs_and_leaves_out_what_is_ignored() -> None:
    found = interpreted("cross_entropy_difference")
    assert found["difference"] < 1e-5
    assert found["gradient_difference"] < 1e-6


@pytest.mark.skipif(sys.platform != "linux", reason="Triton is there for Linux alone")
def test_a_mark_has_its_name_and_changes_nothing() -> None:
    assert interpreted("what_a_mark_does") == {"name": MARK, "left": 1.0}
