"""Compilation beside the training loop: begun before the first step, told of every step."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic

import torch

from kopeck_trainer.compilation.blocks import Blocks, forget_graphs
from kopeck_trainer.compilation.causes import Causes
from kopeck_trainer.compilation.fallbacks import Fallbacks
from kopeck_trainer.compilation.measuring import StepFacts
from kopeck_trainer.compilation.numerics import Ladder, Verdict
from kopeck_trainer.compilation.search import ModeSearch
from kopeck_trainer.compile_watch import CompileWatch
from kopeck_trainer.config import CompileConfig, CompileMode, OnRecompile
from kopeck_trainer.data_workers import is_data_worker_lost
from kopeck_trainer.errors import ModeFailedError
from kopeck_trainer.peers import is_peer_lost
from kopeck_trainer.progress import Progress
from kopeck_trainer.reporter import Reporter

STANCES: dict[OnRecompile, str] = {
    "eager": "eager_on_recompile",
    "fail": "fail_on_recompile",
    "allow": "default",
}


@dataclass(kw_only=True)
class Compilation:
    """The mode in use, until it is settled and warm; then what new calls may do."""

    config: CompileConfig
    blocks: Blocks
    ladder: Ladder | None
    """None: compiled is not compared with eager."""
    search: ModeSearch
    warm_up: Callable[[], None]
    """Compiles for the shapes that the first batch has not."""
    watch: CompileWatch
    fallbacks: Fallbacks
    causes: Causes
    reporter: Reporter
    progress: Progress
    device: torch.device
    mode: CompileMode = field(default="off", init=False)
    is_settled: bool = field(default=False, init=False)
    """No mode is on trial."""

    def begin(self, remaining_steps: int) -> None:
        """Set the first mode, and know that it computes what eager does."""
        self.fallbacks.watch(self.blocks.modules, "a block")
        self.fallbacks.watch(self.blocks.losses, "the loss")
        if self.config.mode != "auto":
            self._settle(self.config.mode)
        else:
            self.search.recall()
            self.reporter.update(numerics_mismatch=self.search.mismatch)
            self._try_next(remaining_steps)

    @contextmanager
    def step(self, remaining_steps: int) -> Iterator[None]:
        """One step of training runs inside; `remaining_steps` come after it."""
        compilations, events = self.watch.compilations, self.watch.events
        started_at = monotonic()
        try:
            yield
            if not self.is_settled:
                self._await_device()
        except Exception as error:
            self._raised(error)
            raise
        if self.is_settled:
            self._end_warm_up(compilations)
        else:
            seconds = monotonic() - started_at
            facts = StepFacts(seconds=seconds, has_compiled=self.watch.events != events)
            is_over = self.search.add_step(facts, self._compile_seconds())
            if is_over and remaining_steps > 0:
                self._try_next(remaining_steps)
        self.causes.tell()
        self.reporter.update(eager_fallbacks=self.fallbacks.count)

    def _try_next(self, remaining_steps: int) -> None:
        """Begin the next trial, or settle on a mode."""
        while mode := self.search.begin_trial(remaining_steps, self._compile_seconds()):
            mismatch = self._use(mode).mismatch
            if mismatch is None:
                return
            self.search.refuse(mismatch)
        choice = self.search.decide(remaining_steps)
        self.progress.say(str(choice))
        self.reporter.update(compile_decision=choice.report())
        if self.search.has_compiled_losers(choice.mode):
            forget_graphs(self.device)
            self.watch.listen()
        self._settle(choice.mode)

    def _settle(self, mode: CompileMode) -> None:
        """Keep `mode`, or eager where it computes something else."""
        if self._use(mode).mismatch:
            self._use("off")
        self.is_settled = True

    def _use(self, mode: CompileMode) -> Verdict:
        """Set a mode on all blocks, as the comparison with eager wants it."""
        self.mode = mode
        self.reporter.update(compile_mode=mode)
        if mode == "off":
            self.blocks.set_mode("off")
            return Verdict(options={})
        self.progress.say(f"compiling the blocks, mode {mode}")
        try:
            verdict = self._compared(mode)
            self.warm_up()
        except Exception as error:
            self._raised(error)
            raise
        if said := verdict.note or verdict.mismatch:
            self.progress.say(said)
        if verdict.mismatch:
            self.reporter.update(numerics_mismatch=verdict.mismatch)
        return verdict

    def _compared(self, mode: CompileMode) -> Verdict:
        if self.ladder:
            return self.ladder.climb(mode)
        self.blocks.set_mode(mode)
        return Verdict(options={})

    def _raised(self, error: Exception) -> None:
        """Where a mode on trial is to blame the process leaves: FSDP may be half-way in a step."""
        is_foreign = is_peer_lost(error) or is_data_worker_lost(error)
        if not is_foreign and self.search.is_blamed_for(error):
            reason = str(error).partition("\n")[0]
            raise ModeFailedError(f"a compile mode on trial failed: {reason}") from error

    def _end_warm_up(self, compilations_before: int) -> None:
        """Graphs are complete with the first step that compiles nothing."""
        if self.watch.is_warm:
            return
        self.watch.step_ended(compilations_before)
        if self.watch.is_warm:
            torch.compiler.set_stance(STANCES[self.config.on_recompile])
            self.fallbacks.is_counting = self.mode != "off"
            self.reporter.is_warm()

    def _await_device(self) -> None:
        """A mode on trial is measured by, and may be blamed for, what the device has done."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def _compile_seconds(self) -> float:
        return self.reporter.clock.seconds()["compile"]
