from pathlib import Path

from kopeck_trainer.compilation.policy import Trial
from kopeck_trainer.compilation.record import Decision, recalled, remember

KEY = {"torch": "2.15.0", "ranks": 2}
DECISION = Decision(
    trials=(
        Trial(mode="default", compile_seconds=3.0, step_seconds=0.5),
        Trial(mode="off", compile_seconds=0.0, infeasible="it raised"),
    ),
    mode="default",
)


def test_trials_are_recalled_for_the_same_key_only(tmp_path: Path) -> None:
    remember(tmp_path / "new", KEY, DECISION)
    assert recalled(tmp_path / "new", KEY) == DECISION.trials
    assert recalled(tmp_path / "new", KEY | {"ranks": 4}) == ()


def test_a_record_of_another_form_says_nothing(tmp_path: Path) -> None:
    remember(tmp_path, KEY, DECISION)
    [file] = tmp_path.iterdir()
    for text in ('{"trials": [{"way": "default"}]}', "{", "[]"):
        file.write_text(text)
        assert recalled(tmp_path, KEY) == ()
