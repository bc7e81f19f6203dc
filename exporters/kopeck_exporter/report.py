"""One message of a rank, and the checks that it passes before anything is counted."""

import json
import re
import sys
from dataclasses import dataclass
from typing import Any, TypeGuard

from kopeck_exporter.names import PHASES, STEP_SECONDS_BUCKETS
from kopeck_exporter.totals import Totals

VERSION = 1
LONGEST_TEXT = 1000
LARGEST_WHOLE = 2**53  # JSON readers and Prometheus count exactly up to here


class MalformedReportError(Exception):
    """The message is no report; the text says which field is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a rank process says of itself; totals count from the start of the process.

    `step` and `job_samples` belong to the job, resumed steps included. None is unknown.
    """

    rank: int
    local_rank: int
    sequence: int
    time_unix_seconds: float
    step: int | None
    job_samples: int | None
    totals: Totals
    loss: float | None
    step_seconds: float | None
    samples_per_second: float | None
    mfu: float | None
    compile_mode: str | None
    numerics_mismatch: str | None
    """A sentence: how a compile mode differs from eager, so that it is not used."""
    checkpoint_step: int | None


def read_report(data: bytes) -> Report:
    """Raises MalformedReportError for anything but a report of this version."""
    message = _json_object(data)
    if message.get("v") != VERSION:
        raise MalformedReportError(f"v is not {VERSION}")
    return Report(
        rank=_whole(message, "rank"),
        local_rank=_whole(message, "local_rank"),
        sequence=_whole(message, "seq"),
        time_unix_seconds=_number(message, "time"),
        step=_whole_if_known(message, "step"),
        job_samples=_whole_if_known(message, "job_samples"),
        totals=_totals(message),
        loss=_loss(message),
        step_seconds=_number_if_known(message, "step_seconds"),
        samples_per_second=_number_if_known(message, "samples_per_second"),
        mfu=_number_if_known(message, "mfu"),
        compile_mode=_word_if_known(message, "compile_mode"),
        numerics_mismatch=_text_if_known(message, "numerics_mismatch"),
        checkpoint_step=_whole_if_known(message, "checkpoint_step"),
    )


def _json_object(data: bytes) -> dict[str, Any]:
    try:
        message = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise MalformedReportError("the message is not JSON") from error
    if not isinstance(message, dict):
        raise MalformedReportError("the message is no JSON object")
    return message


def _totals(message: dict[str, Any]) -> Totals:
    return Totals(
        samples=_whole(message, "samples"),
        tokens=_whole_if_known(message, "tokens"),
        step_bucket_counts=_bucket_counts(message, "step_bucket_counts"),
        step_seconds_sum=_number(message, "step_seconds_sum"),
        phase_seconds=_phase_seconds(message, "phase_seconds"),
        compile_seconds=_number_if_known(message, "compile_seconds"),
        graph_breaks=_whole_if_known(message, "graph_breaks"),
        recompiles=_whole_if_known(message, "recompiles"),
    )


def _is_number(value: object) -> TypeGuard[int | float]:
    """JSON's true is no number, though an int to Python."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _whole(message: dict[str, Any], name: str) -> int:
    return _checked_whole(message.get(name), name)


def _whole_if_known(message: dict[str, Any], name: str) -> int | None:
    return None if message.get(name) is None else _whole(message, name)


def _checked_whole(value: object, name: str) -> int:
    if not _is_number(value) or isinstance(value, float) or not 0 <= value <= LARGEST_WHOLE:
        raise MalformedReportError(f"{name} is no whole number of 0 or more")
    return value


def _number(message: dict[str, Any], name: str) -> float:
    return _checked_number(message.get(name), name)


def _number_if_known(message: dict[str, Any], name: str) -> float | None:
    return None if message.get(name) is None else _number(message, name)


def _checked_number(value: object, name: str) -> float:
    if not _is_number(value) or not 0 <= value <= LARGEST_WHOLE:  # NaN fails the comparison
        raise MalformedReportError(f"{name} is no finite number of 0 or more")
    return float(value)


def _loss(message: dict[str, Any]) -> float | None:
    """None too if it is not finite: a run that diverges must not lose its counts."""
    value = message.get("loss")
    if value is None:
        return None
    if not _is_number(value):
        raise MalformedReportError("loss is no number")
    return float(value) if abs(value) <= sys.float_info.max else None


def _word_if_known(message: dict[str, Any], name: str) -> str | None:
    """Short and plain, since it becomes a label."""
    value = message.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not re.fullmatch("[a-z0-9_-]{1,32}", value):
        raise MalformedReportError(f"{name} is no word of lower-case letters, digits, - and _")
    return value


def _text_if_known(message: dict[str, Any], name: str) -> str | None:
    value = message.get(name)
    if value is not None and (not isinstance(value, str) or len(value) > LONGEST_TEXT):
        raise MalformedReportError(f"{name} is no text of at most {LONGEST_TEXT} characters")
    return value


def _bucket_counts(message: dict[str, Any], name: str) -> tuple[int, ...]:
    counts = message.get(name)
    if not isinstance(counts, list) or len(counts) != len(STEP_SECONDS_BUCKETS) + 1:
        raise MalformedReportError(f"{name} is no list of {len(STEP_SECONDS_BUCKETS) + 1} counts")
    return tuple(_checked_whole(count, name) for count in counts)


def _phase_seconds(message: dict[str, Any], name: str) -> tuple[float, ...]:
    """In the order of PHASES; a phase that is not named took no time."""
    by_phase = message.get(name)
    if not isinstance(by_phase, dict) or not by_phase.keys() <= set(PHASES):
        raise MalformedReportError(f"{name} does not map phases to seconds")
    return tuple(_checked_number(by_phase.get(phase, 0.0), name) for phase in PHASES)
