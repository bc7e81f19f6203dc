"""What the trainer's policy chose among compile modes, and what it measured of each."""

from dataclasses import dataclass
from typing import Any

from kopeck_exporter.fields import (
    MalformedReportError,
    Message,
    number,
    number_if_known,
    text_if_known,
    word,
)

MOST_TRIALS = 8  # above the number of modes that torch has; each is a label


@dataclass(frozen=True, slots=True)
class ModeTrial:
    """Real steps in one mode, of the slowest rank."""

    mode: str
    compile_seconds: float
    step_seconds: float


@dataclass(frozen=True, slots=True)
class CompileDecision:
    """`break_even_steps` is None where the first mode that was tried was kept."""

    mode: str
    why: str | None
    trials: tuple[ModeTrial, ...]
    break_even_steps: float | None


def decision_if_known(message: Message, name: str) -> CompileDecision | None:
    """Raises MalformedReportError for anything but a decision, or null."""
    decision = message.get(name)
    if decision is None:
        return None
    trials = decision.get("trials") if isinstance(decision, dict) else None
    if not isinstance(trials, list) or len(trials) > MOST_TRIALS:
        raise MalformedReportError(f"{name} is no decision with at most {MOST_TRIALS} trials")
    read = tuple(_trial(each, name) for each in trials)
    if len({trial.mode for trial in read}) < len(read):
        raise MalformedReportError(f"{name} has two trials of one mode")
    return CompileDecision(
        mode=word(decision, "mode"),
        why=text_if_known(decision, "why"),
        trials=read,
        break_even_steps=number_if_known(decision, "break_even_steps"),
    )


def _trial(trial: Any, name: str) -> ModeTrial:
    if not isinstance(trial, dict):
        raise MalformedReportError(f"{name} has a trial that is no JSON object")
    return ModeTrial(
        mode=word(trial, "mode"),
        compile_seconds=number(trial, "compile_seconds"),
        step_seconds=number(trial, "step_seconds"),
    )
