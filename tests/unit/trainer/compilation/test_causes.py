from pathlib import Path

import torch
from torch import Tensor

from kopeck_trainer.compilation.causes import Causes
from kopeck_trainer.compile_watch import CompileWatch
from kopeck_trainer.phases import PhaseClock
from tests.unit.trainer.on_ranks import on_ranks


def said() -> list[list[str]]:
    """By three parts of a training: before the warm-up ended with one shape and another, after."""
    told: list[str] = []
    watch = CompileWatch(PhaseClock("warmup"))
    causes = Causes(watch, told.append)

    @torch.compile(dynamic=False, backend="eager")
    def doubled(x: Tensor) -> Tensor:
        x = x * 2
        torch._dynamo.graph_break()
        return x + 1

    def after(*sizes: int) -> list[str]:
        told.clear()
        for size in sizes:
            before = watch.compilations
            doubled(torch.ones(size))
            watch.step_ended(before)
            causes.tell()
        return list(told)

    return [after(2), after(3, 3), after(4, 4)]


def test_each_break_is_said_once_and_compiling_again_with_its_reason_once_warm(
    tmp_path: Path,
) -> None:
    [[first, second, third]] = on_ranks(1, said, tmp_path)
    [graph_break] = first
    assert graph_break.startswith("graph break: Call to `torch._dynamo.graph_break()`. Explanation")
    assert second == []
    assert third
    assert all(sentence.startswith("compiled again: ") for sentence in third)
    assert any("test_causes.py" in each and "expected 3, actual 4" in each for each in third)
