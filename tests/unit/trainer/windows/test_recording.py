"""When a window begins and ends, and that nothing in it raises."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from kopeck_trainer.progress import Progress
from kopeck_trainer.reporter import Reporter
from kopeck_trainer.windows.faults import WindowFaults
from kopeck_trainer.windows.recording import Windows
from kopeck_trainer.windows.wish import WindowWish

STEPS = 2
NEEDED = 1 + STEPS


@dataclass
class Story:
    """A profiler and an analysis that note what they are told, and one that raises."""

    raises_in: str = ""
    compiles_after: int = 1000
    now: int = 0
    told: list[str] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        def note(*_: Any) -> None:
            self.told.append(f"{self.now}: {name}")
            if name == self.raises_in:
                raise RuntimeError("no CUPTI\nat all")

        return note

    def begin(self, *told: Any) -> None:
        """Of the recorder, or with a trace of the analysis."""
        self.__getattr__("measure" if told else "begin")()


def a_story(folder: Path, **facts: Any) -> tuple[Story, Windows]:
    story, reporter = Story(**facts), Reporter({})
    windows = Windows(
        steps=STEPS,
        wish=WindowWish(None),
        recorder_of=lambda: cast("Any", story),
        analysis=cast("Any", story),
        faults=WindowFaults(3, reporter),
        folder=folder,
        local_rank=0,
        compilations=lambda: story.now // story.compiles_after,
        reporter=reporter,
        progress=Progress(1),
    )
    return story, windows


def run(story: Story, windows: Windows, *, steps: int = 8, free_steps: int = 100) -> list[str]:
    """Asked after step 2, and again in every later one."""
    for step in range(1, steps + 1):
        story.now = step
        windows.between_steps(step, is_asked=step in (2, 3, 4), free_steps=free_steps)
    return story.told


def test_a_window_is_a_step_to_warm_up_and_the_steps_that_are_measured(tmp_path: Path) -> None:
    assert run(*a_story(tmp_path)) == [
        "2: warm_up",
        "3: begin",
        "4: mark",
        "5: end",
        "5: measure",
    ]


@pytest.mark.parametrize(("free_steps", "begins"), [(NEEDED - 1, False), (NEEDED, True)])
def test_a_window_needs_steps_in_which_nothing_else_happens(
    tmp_path: Path, free_steps: int, *, begins: bool
) -> None:
    assert bool(run(*a_story(tmp_path), free_steps=free_steps)) == begins


@pytest.mark.parametrize(
    ("raises_in", "told"),
    [
        ("warm_up", ["2: warm_up", "3: warm_up", "4: warm_up"]),
        ("begin", ["2: warm_up", "3: begin", "3: abandon", "4: warm_up", "5: begin", "5: abandon"]),
        ("mark", ["2: warm_up", "3: begin", "4: mark", "4: abandon"]),
        ("end", ["2: warm_up", "3: begin", "4: mark", "5: end"]),
    ],
)
def test_a_profiler_that_raises_loses_its_window_alone(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], raises_in: str, told: list[str]
) -> None:
    story, windows = a_story(tmp_path, raises_in=raises_in)
    assert run(story, windows) == told
    said = capfd.readouterr().err
    assert said == "kopeck: rank 3 has no trace window: RuntimeError: no CUPTI\n"


def test_a_window_in_which_something_was_compiled_is_not_measured(tmp_path: Path) -> None:
    told = run(*a_story(tmp_path, compiles_after=4))
    assert told[-1] == "5: end"


def test_what_comes_between_ends_a_window_without_figures(tmp_path: Path) -> None:
    story, windows = a_story(tmp_path)
    run(story, windows, steps=4)
    windows.abandon()
    windows.abandon()
    assert story.told[-1] == "4: abandon"
    assert not any("measure" in each for each in story.told)


def test_the_profiler_is_on_from_the_begin_of_a_window_to_its_end(tmp_path: Path) -> None:
    story, windows = a_story(tmp_path)
    idle_seconds = []
    for step in range(1, 8):
        story.now = step
        windows.between_steps(step, is_asked=step == 2, free_steps=100)
        known = windows.reporter._figures.profiler_idle_seconds(1e12)
        idle_seconds.append(None if known is None else known > 0)
    assert idle_seconds == [None, False, False, False, True, True, True]


@pytest.mark.parametrize("raises_in", ["warm_up", "begin", "mark", "end"])
def test_the_profiler_is_off_after_it_has_failed(tmp_path: Path, raises_in: str) -> None:
    story, windows = a_story(tmp_path, raises_in=raises_in)
    run(story, windows)
    idle_seconds = windows.reporter._figures.profiler_idle_seconds(1e12)
    assert idle_seconds is not None
    assert idle_seconds > 0


def test_a_window_costs_what_its_steps_took_longer_and_the_one_after_it(tmp_path: Path) -> None:
    story, windows = a_story(tmp_path)
    costs: list[float] = []
    windows.wish.cost = costs.append  # type: ignore[method-assign]
    usual, extra = 0.5, {3: 0.1, 4: 0.25, 5: 0.0, 6: 1.0, 7: 64.0}
    for step in range(1, 9):
        story.now = step
        windows.reporter.step_ended(
            samples=1, step=step, job_samples=1, seconds=usual, loss=None, is_steady=True
        )
        windows.step_ended(step, usual + extra.get(step, 0.0))
        windows.between_steps(step, is_asked=step == 2, free_steps=100)
    assert costs == [pytest.approx(1.35)]
