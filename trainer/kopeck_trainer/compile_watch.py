"""What torch.compile does in this process, as it happens."""

from typing import Any

from torch._dynamo.callback import (
    CallbackArgs,
    CallbackTrigger,
    on_compile_end,
    on_compile_start,
)
from torch._dynamo.utils import counters

from kopeck_trainer.phases import PhaseClock
from kopeck_trainer.recompile_reasons import RecompileReasons


class CompileWatch:
    """Books compile time, to the second it starts and ends, and counts graph breaks and graphs.

    torch has no public way to learn of a compilation while it runs; these callbacks exist in
    2.11 to 2.15. The backward may be compiled in a thread of autograd.
    """

    def __init__(self, clock: PhaseClock) -> None:
        self._clock = clock
        self.compilations = 0
        self.events = 0
        """Compilations, and what else takes a step's time: autotuning, recording CUDA graphs."""
        self._warm_compilations: int | None = None
        self._reasons = RecompileReasons()
        self.listen()

    def listen(self) -> None:
        """Once more after `torch._dynamo.reset()`: it forgets who listens."""
        on_compile_start(self._started)
        on_compile_end(self._ended)

    @property
    def is_warm(self) -> bool:
        """True from the end of the first step without a compilation."""
        return self._warm_compilations is not None

    def step_ended(self, compilations_before: int) -> None:
        if not self.is_warm and self.compilations == compilations_before:
            self._warm_compilations = self.compilations
            self._reasons.begin()

    @property
    def recompiles(self) -> dict[str, int]:
        """Since warm-up, by reason."""
        warm = self._warm_compilations
        if warm is not None:
            self._reasons.read()
        return self._reasons.by_reason(0 if warm is None else self.compilations - warm)

    @property
    def graph_breaks(self) -> int:
        return counters["graph_break"].total()

    @property
    def figures(self) -> dict[str, Any]:
        """By the names of `Figures`. A graph that torch's cache has is a hit, another a miss."""
        inductor, recompiles = counters["inductor"], self.recompiles
        return {
            "graph_breaks": self.graph_breaks,
            "recompiles": sum(recompiles.values()),
            "recompile_reasons": recompiles,
            "compile_cache_hits": inductor["fxgraph_cache_hit"],
            "compile_cache_misses": inductor["fxgraph_cache_miss"],
            "cudagraph_skips": inductor["cudagraph_skips"],
        }

    def _started(self, args: CallbackArgs) -> None:
        self._clock.enter("compile")
        self.events += 1
        if args.callback_trigger is CallbackTrigger.DYNAMO:
            self.compilations += 1
            if self.is_warm:
                self._reasons.read()

    def _ended(self, _args: CallbackArgs) -> None:
        self._clock.leave()
