"""Real recompiles, and the word that each is counted by."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from kopeck_exporter.names import RECOMPILE_REASONS
from kopeck_trainer.compile_watch import CompileWatch
from kopeck_trainer.phases import PhaseClock
from kopeck_trainer.recompile_reasons import recompile_reason
from tests.unit.trainer.on_ranks import on_ranks

Compiled = Callable[..., Any]
Case = tuple[Callable[..., Any], Callable[[Compiled], Any], Callable[[Compiled], Any]]


def doubled(x: Tensor) -> Tensor:
    return x * 2


def times(x: Tensor, factor: Any) -> Tensor:
    return x * factor


def applied(x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
    return function(x) * 2


class One: ...


class Other: ...


def of_its_class(x: Tensor, thing: object) -> Tensor:
    return x * 2 if type(thing) is One else x * 3


def joined(x: Tensor, y: Tensor) -> Tensor:
    return x.add_(y)


def without_gradient(compiled: Compiled, x: Tensor) -> None:
    with torch.no_grad():
        compiled(x)


def in_autocast(compiled: Compiled, x: Tensor) -> None:
    with torch.autocast("cpu"):
        compiled(x)


def deterministically(compiled: Compiled, x: Tensor) -> None:
    torch.use_deterministic_algorithms(mode=True)
    compiled(x)
    torch.use_deterministic_algorithms(mode=False)


def twice(compiled: Compiled, x: Tensor) -> None:
    compiled(x, x)


ONE = torch.ones(2)
GRADED = torch.ones(2, requires_grad=True)
CASES: dict[str, tuple[str, Case]] = {
    "another size": ("shape", (doubled, lambda c: c(ONE), lambda c: c(torch.ones(3)))),
    "another rank": ("shape", (doubled, lambda c: c(ONE), lambda c: c(torch.ones(2, 2)))),
    "another dtype": ("dtype", (doubled, lambda c: c(ONE), lambda c: c(ONE.double()))),
    "another stride": (
        "stride",
        (doubled, lambda c: c(torch.ones(2, 3)), lambda c: c(torch.ones(3, 2).t())),
    ),
    "no gradients": (
        "grad_mode",
        (doubled, lambda c: c(GRADED), lambda c: without_gradient(c, GRADED)),
    ),
    "a tensor with gradient": ("grad_mode", (doubled, lambda c: c(ONE), lambda c: c(GRADED))),
    "autocast": ("global_state", (doubled, lambda c: c(ONE), lambda c: in_autocast(c, ONE))),
    "determinism": (
        "global_state",
        (doubled, lambda c: c(ONE), lambda c: deterministically(c, ONE)),
    ),
    "another function": (
        "object_identity",
        (applied, lambda c: c(ONE, torch.sin), lambda c: c(ONE, torch.cos)),
    ),
    "one tensor twice": (
        "object_identity",
        (joined, lambda c: c(ONE.clone(), ONE), lambda c: twice(c, ONE.clone())),
    ),
    "another class": ("type", (of_its_class, lambda c: c(ONE, One()), lambda c: c(ONE, Other()))),
    "a number for a tensor": ("type", (doubled, lambda c: c(ONE), lambda c: c(2))),
    "another number": ("value", (times, lambda c: c(ONE, 2), lambda c: c(ONE, 3))),
}


def counted(name: str) -> tuple[dict[str, int], int]:
    """Recompiles by reason of a case after its first call and a warm-up; all compilations of it."""
    torch._dynamo.reset()
    watch = CompileWatch(PhaseClock("warmup"))
    function, first, second = CASES[name][1]
    compiled = torch.compile(function, dynamic=False, backend="eager")
    first(compiled)
    warm = watch.compilations
    watch.step_ended(warm)
    second(compiled)
    figures = watch.figures
    assert figures["recompiles"] == sum(figures["recompile_reasons"].values())
    reasons = {reason: count for reason, count in figures["recompile_reasons"].items() if count}
    return reasons, watch.compilations - warm


def all_counted() -> dict[str, tuple[dict[str, int], int]]:
    return {name: counted(name) for name in CASES}


def test_each_recompile_is_counted_once_by_what_nothing_was_compiled_for(tmp_path: Path) -> None:
    [found] = on_ranks(1, all_counted, tmp_path)
    assert found == {name: ({reason: 1}, 1) for name, (reason, _) in CASES.items()}


def new_shapes_after_warm_up(count: int) -> tuple[dict[str, int], int]:
    """Of a call that is new each time, and of one function that is called first after warm-up."""
    torch._dynamo.config.recompile_limit = 2 * count
    watch = CompileWatch(PhaseClock("warmup"))
    compiled = torch.compile(doubled, dynamic=False, backend="eager")
    compiled(ONE)
    watch.step_ended(watch.compilations)
    for size in range(3, 3 + count):
        compiled(torch.ones(size))
    torch.compile(times, dynamic=False, backend="eager")(ONE, 2)
    figures = watch.figures
    return figures["recompile_reasons"], figures["recompiles"]


@pytest.mark.parametrize("count", [1, 100])
def test_none_is_lost_of_more_compilations_than_torch_remembers(tmp_path: Path, count: int) -> None:
    [(reasons, total)] = on_ranks(1, new_shapes_after_warm_up, tmp_path, count)
    expected = dict.fromkeys(RECOMPILE_REASONS, 0) | {"shape": count, "new_code": 1}
    assert (reasons, total) == (expected, count + 1)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("3/1: 5 <= x.size()[0]  # return x * 2 if x.stride() == 3 else x", "shape"),
        ("0/0: len(x) == 1      # size mismatch is a word of this line\nUser stack", "value"),
        ("0/0: list(dict.keys(d))[0] == 'a'", "value"),
        ("0/0: L is K", "object_identity"),
        ("0/0: ___check_torch_function_mode_stack()", "global_state"),
        ("0/0: GLOBAL_STATE changed: num_threads grad_mode ", "grad_mode"),
        ("0/0: Cache line invalidated because L['m'] got deallocated", "object_identity"),
        ("0/0: tensor 'x' dispatch key set mismatch. expected DispatchKeySet(CPU)", "other"),
        ("Unable to find recompilation reasons", "other"),
        ("", "other"),
        (None, "new_code"),
    ],
)
def test_what_torch_says_of_other_guards_has_a_reason_too(text: str | None, reason: str) -> None:
    assert recompile_reason(text) == reason
    assert reason in RECOMPILE_REASONS
