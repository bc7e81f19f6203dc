"""Reading the fields of a message, so that every refusal names its field."""

import json
import re
from typing import Any, TypeGuard

LONGEST_TEXT = 1000
LARGEST_WHOLE = 2**53  # JSON readers and Prometheus count exactly up to here

Message = dict[str, Any]


class MalformedReportError(Exception):
    """The message is no report; the text says which field is wrong."""


def json_object(data: bytes) -> Message:
    try:
        message = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise MalformedReportError("the message is not JSON") from error
    if not isinstance(message, dict):
        raise MalformedReportError("the message is no JSON object")
    return message


def is_number(value: object) -> TypeGuard[int | float]:
    """JSON's true is no number, though an int to Python: so the exact types, as JSON has them."""
    kind = type(value)
    return kind is float or kind is int


def whole(message: Message, name: str) -> int:
    return checked_whole(message.get(name), name)


def whole_if_known(message: Message, name: str) -> int | None:
    return None if message.get(name) is None else whole(message, name)


def checked_whole(value: object, name: str) -> int:
    if type(value) is not int or not 0 <= value <= LARGEST_WHOLE:
        raise MalformedReportError(f"{name} is no whole number of 0 or more")
    return value


def number(message: Message, name: str) -> float:
    return checked_number(message.get(name), name)


def number_if_known(message: Message, name: str) -> float | None:
    return None if message.get(name) is None else number(message, name)


def checked_number(value: object, name: str) -> float:
    if not is_number(value) or not 0 <= value <= LARGEST_WHOLE:  # NaN fails the comparison
        raise MalformedReportError(f"{name} is no finite number of 0 or more")
    return float(value)


def ratio(message: Message, name: str) -> float:
    value = number(message, name)
    if value > 1:
        raise MalformedReportError(f"{name} is above 1")
    return value


def ratio_if_known(message: Message, name: str) -> float | None:
    return None if message.get(name) is None else ratio(message, name)


def word(message: Message, name: str) -> str:
    """Short and plain, since it becomes a label."""
    value = message.get(name)
    if not isinstance(value, str) or not re.fullmatch("[a-z0-9_-]{1,32}", value):
        raise MalformedReportError(f"{name} is no word of lower-case letters, digits, - and _")
    return value


def word_if_known(message: Message, name: str) -> str | None:
    return None if message.get(name) is None else word(message, name)


def text_if_known(message: Message, name: str) -> str | None:
    value = message.get(name)
    if value is not None and (not isinstance(value, str) or len(value) > LONGEST_TEXT):
        raise MalformedReportError(f"{name} is no text of at most {LONGEST_TEXT} characters")
    return value
