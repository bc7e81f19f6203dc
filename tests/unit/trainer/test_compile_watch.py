from pathlib import Path

import torch
from torch import Tensor

from kopeck_trainer.compile_watch import CompileWatch
from kopeck_trainer.phases import PhaseClock
from tests.unit.trainer.on_ranks import on_ranks


def watched_steps() -> list[tuple[int, bool, int, int]]:
    """Compilations, warm, recompiles and graph breaks after steps of sizes 2, 2, 2, 3, 3.

    And then after torch has forgotten all, and a step of size 2.
    """
    clock = PhaseClock("warmup")
    watch = CompileWatch(clock)

    @torch.compile(dynamic=False, backend="eager")
    def doubled(x: Tensor) -> Tensor:
        x = x * 2
        torch._dynamo.graph_break()
        return x + 1

    seen = []
    for size in (2, 2, 2, 3, 3, None, 2):
        if size is None:
            torch._dynamo.reset()
            watch.listen()
            continue
        before = watch.compilations
        doubled(torch.ones(size))
        watch.step_ended(before)
        recompiles = sum(watch.recompiles.values())
        seen.append((watch.compilations, watch.is_warm, recompiles, watch.graph_breaks))
    assert clock.phase == "warmup"
    assert 0 < clock.seconds()["compile"] < sum(clock.seconds().values())
    return seen


def test_compilations_breaks_and_recompiles_after_warm_up_are_counted(tmp_path: Path) -> None:
    [seen] = on_ranks(1, watched_steps, tmp_path)
    first = (2, False, 0, 1)  # one graph on each side of the break
    assert seen[0] == first
    assert seen[1] == seen[2] == (2, True, 0, 1)
    assert seen[4][:3] == (4, True, 2)
    assert seen[5][:3] == (6, True, 4)
