from kopeck_trainer.compilation.choice import Choice
from kopeck_trainer.compilation.policy import Trial

DEFAULT = Trial(mode="default", compile_seconds=30.0, step_seconds=0.25)
FAST = Trial(mode="reduce-overhead", compile_seconds=40.0, step_seconds=0.125)
BROKEN = Trial(mode="off", compile_seconds=0.0, infeasible="it raised")


def chosen(trial: Trial) -> Choice:
    return Choice(chosen=trial, trials=(DEFAULT, BROKEN, FAST), remaining_steps=1000)


def test_it_says_what_each_usable_mode_would_cost_and_when_the_chosen_one_is_repaid() -> None:
    assert str(chosen(FAST)) == (
        "compile mode reduce-overhead for 1000 steps: default 253 s, reduce-overhead 129 s; "
        "repaid after 80 steps"
    )


def test_the_report_has_the_numbers_of_modes_that_can_be_used() -> None:
    assert chosen(FAST).report() == {
        "mode": "reduce-overhead",
        "why": str(chosen(FAST)),
        "trials": [
            {"mode": "default", "compile_seconds": 30.0, "step_seconds": 0.25},
            {"mode": "reduce-overhead", "compile_seconds": 40.0, "step_seconds": 0.125},
        ],
        "break_even_steps": 80.0,
    }


def test_the_first_mode_is_compared_with_nothing() -> None:
    assert chosen(DEFAULT).repaid_after_steps is None
    assert "break_even_steps" not in chosen(DEFAULT).report()
