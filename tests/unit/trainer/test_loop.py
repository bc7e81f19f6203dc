"""A host that is a step ahead of its device sees the end later, but all ranks at the same step."""

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from kopeck_trainer.checkpoint.manifest import Position
from kopeck_trainer.config import TrainingConfig
from kopeck_trainer.errors import NonfiniteLossError
from kopeck_trainer.loop import Loop
from kopeck_trainer.progress import Progress
from kopeck_trainer.reporter import Reporter
from kopeck_trainer.step_split import StepSplit
from kopeck_trainer.step_totals import PendingTotals
from kopeck_trainer.timeline import HostTimeline
from tests.unit.trainer.small_trainings import no_wishes


@dataclass
class Recording:
    """A step that asks to stop or to save, and checkpoints that are due, when they are told to."""

    stops_at: int = 0
    wishes_at: int = 0
    window_at: int = 0
    nan_at: int = 0
    settles_at: int = 0
    """After this step no compile mode is on trial any more."""
    most_ahead: int = 0
    """Steps that were handed over before they were told, while modes were on trial."""
    progressed: int = 0
    due_every: int = 1000
    ran: int = 0
    saved: list[int] = field(default_factory=list)
    told: list[int] = field(default_factory=list)
    windows: list[tuple[int, int]] = field(default_factory=list)
    """The step after which one was asked for, and the free steps after it."""

    def run(self, *_: Any) -> PendingTotals:
        if not self.is_settled:
            self.most_ahead = max(self.most_ahead, self.ran - len(self.told))
        self.ran += 1
        wishes = (self.ran == self.stops_at, self.ran == self.wishes_at, self.ran == self.window_at)
        loss = math.nan if self.ran == self.nan_at else 0.5
        return PendingTotals(
            torch.tensor(loss), torch.ones(()), [torch.tensor(float(each)) for each in wishes]
        )

    @property
    def is_settled(self) -> bool:
        return self.ran >= self.settles_at

    def is_due(self, position: Position, *, is_wished: bool) -> bool:
        return is_wished or position.step % self.due_every == 0

    def steps_until_due(self, position: Position) -> int:
        return self.due_every - position.step % self.due_every

    def between_steps(self, step: int, *, is_asked: bool, free_steps: int) -> None:
        if is_asked:
            self.windows.append((step, free_steps))

    def abandon(self) -> None:
        pass

    def step_ended(self, step: int, seconds: float) -> None:
        assert step == len(self.told) + 1
        assert seconds >= 0

    def begin(self, position: Position) -> None:
        assert self.told[-1] == position.step  # whatever is saved was told before
        self.saved.append(position.step)

    def step(self, line: Any) -> None:
        self.told.append(line.step)

    def say(self, sentence: str) -> None:
        assert sentence == f"step {self.nan_at}: the loss is nan"


@dataclass
class NoCompilation:
    """Modes are on trial until the recorded step has settled them."""

    recording: Recording
    watch: Any = field(default_factory=lambda: SimpleNamespace(figures={}, is_warm=True))

    def begin(self, remaining_steps: int) -> None:
        assert remaining_steps == 10

    def step(self, _remaining_steps: int) -> AbstractContextManager[None]:
        return nullcontext()

    @property
    def is_settled(self) -> bool:
        return self.recording.is_settled


def run(recording: Recording, lead: int, **training: Any) -> tuple[bool, int]:
    """Ten steps at most. Whether they were completed, and the last step."""
    batches = SimpleNamespace(
        per_step=1, micro_batch=4, ranks=1, tokens=None, of_step=lambda _: no_batches()
    )

    def progressed() -> None:
        recording.progressed += 1

    reporter = Reporter({})
    loop = Loop(
        training=TrainingConfig(global_batch_size=4, micro_batch_size=4, steps=10, **training),
        last_sample=40,
        position=Position(step=0, samples=0),
        step=cast("Any", recording),
        lead=lead,
        split=StepSplit(reporter.clock, HostTimeline()),
        batches=cast("Any", batches),
        checkpoints=cast("Any", recording),
        compilation=cast("Any", NoCompilation(recording)),
        hang_watch=cast("Any", SimpleNamespace(progressed=progressed)),
        wishes=no_wishes(),
        windows=cast("Any", recording),
        reporter=reporter,
        progress=cast("Progress", recording),
        garbage=cast("Any", SimpleNamespace(step_ended=lambda: None)),
    )
    return loop.run(), loop.position.step


def no_batches() -> Iterator[Any]:
    return iter(())


@pytest.mark.parametrize(("lead", "last_step"), [(0, 3), (1, 4)])
def test_it_stops_after_the_steps_that_were_under_way(lead: int, last_step: int) -> None:
    recording = Recording(stops_at=3)
    assert run(recording, lead) == (False, last_step)
    assert recording.told == list(range(1, last_step + 1))


@pytest.mark.parametrize("lead", [0, 1])
def test_every_step_is_told_once_and_in_order(lead: int) -> None:
    recording = Recording(due_every=4)
    assert run(recording, lead) == (True, 10)
    assert recording.told == list(range(1, 11))
    assert recording.saved == [4, 8]


def test_a_wish_that_is_seen_while_saving_ends_the_training_there() -> None:
    recording = Recording(stops_at=4, due_every=4)
    assert run(recording, lead=1) == (False, 4)
    assert recording.saved == [4]


@pytest.mark.parametrize(("lead", "step"), [(0, 3), (1, 4)])
def test_a_wish_for_a_window_is_seen_after_the_step_that_carried_it(lead: int, step: int) -> None:
    recording = Recording(window_at=3)
    run(recording, lead)
    assert recording.windows == [(step, 10 - step)]


def test_a_window_has_the_steps_until_the_next_checkpoint() -> None:
    recording = Recording(window_at=5, due_every=4)
    run(recording, lead=1)
    assert recording.windows == [(6, 2)]


@pytest.mark.parametrize(("lead", "window_at"), [(0, 4), (1, 3), (1, 4)])
def test_no_window_begins_with_a_wish_from_before_a_checkpoint(lead: int, window_at: int) -> None:
    recording = Recording(window_at=window_at, due_every=4)
    run(recording, lead)
    assert recording.windows == [(4, 0)]


@pytest.mark.parametrize(("lead", "saved_step"), [(0, 3), (1, 4)])
def test_a_wish_to_save_is_seen_after_the_step_that_carried_it(lead: int, saved_step: int) -> None:
    recording = Recording(wishes_at=3)
    assert run(recording, lead) == (True, 10)
    assert recording.saved == [saved_step]


@pytest.mark.parametrize("lead", [0, 1])
def test_a_step_whose_loss_is_not_finite_is_told_and_not_saved(lead: int) -> None:
    recording = Recording(nan_at=4, due_every=2)
    with pytest.raises(NonfiniteLossError, match="the loss of step 4 is nan"):
        run(recording, lead, fails_on_nonfinite_loss=True)
    assert recording.told == [1, 2, 3, 4]
    assert recording.saved == [2]


@pytest.mark.parametrize("lead", [0, 1])
def test_a_loss_that_is_not_finite_stops_nothing_unless_it_is_to(lead: int) -> None:
    assert run(Recording(nan_at=4), lead) == (True, 10)


def test_steps_are_taken_one_by_one_while_compile_modes_are_on_trial() -> None:
    recording = Recording(settles_at=6)
    assert run(recording, lead=1) == (True, 10)
    assert recording.most_ahead == 0
    assert recording.told == list(range(1, 11))


@pytest.mark.parametrize("lead", [0, 1])
def test_the_watch_hears_of_steps_as_they_end(lead: int) -> None:
    recording = Recording()
    run(recording, lead)
    assert recording.progressed == 10 - lead
