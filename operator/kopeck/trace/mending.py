"""Damaged JSON made readable: what is wrong inside strings and numbers, never the structure."""

import json
import re

_STRING_OR_NO_NUMBER = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\b(?:NaN|nan|Infinity|inf)\b', re.DOTALL)
_STRING_OR_BRACKET = re.compile(rb'"(?:[^"\\]|\\.)*"|[][{}]', re.DOTALL)
_ESCAPE = re.compile(rb'\\(?:u[0-9a-fA-F]{4}|["\\/bfnrt])|\\')
_CONTROL = re.compile(rb"[\x00-\x1f]")


def mended(text: bytes) -> bytes:
    """The same with control characters as blanks, stray backslashes doubled, NaN as null.

    Bytes that are no UTF-8 become U+FFFD.
    """
    valid = text.decode(errors="replace").encode()
    return _STRING_OR_NO_NUMBER.sub(_mended_token, valid)


def _mended_token(found: re.Match[bytes]) -> bytes:
    token = found[0]
    if not token.startswith(b'"'):
        return b"null"
    return _CONTROL.sub(b" ", _ESCAPE.sub(_mended_escape, token))


def _mended_escape(found: re.Match[bytes]) -> bytes:
    return b"\\\\" if found[0] == b"\\" else found[0]


def list_end(text: bytes) -> int | None:
    """Behind the bracket that ends a list, whose own bracket does not stand in `text`.

    None where the list does not end, or is no JSON.
    """
    # Latin-1 has one character for each byte, so that places stay the same.
    listed = "[" + text.decode("latin-1")
    try:
        _, end = json.JSONDecoder(strict=False, parse_int=float).raw_decode(listed)
    except json.JSONDecodeError:
        return None
    except RecursionError:
        return _end_by_brackets(text)
    return end - 1


def _end_by_brackets(text: bytes) -> int | None:
    depth = 1
    for found in _STRING_OR_BRACKET.finditer(text):
        depth += (found[0] in b"[{") - (found[0] in b"]}")
        if not depth:
            return found.end()
    return None
