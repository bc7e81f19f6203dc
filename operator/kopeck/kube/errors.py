"""What the API server answers when it does not do what it was asked.

ApiError
├── ConflictError        another writer was first, or the resource version is old
├── AlreadyExistsError   an object of that name is there
├── NotFoundError        no object of that name is there
└── RefusedError         admission, quota, validation or RBAC say no
"""

from collections.abc import Mapping
from typing import Any


class ApiError(Exception):
    """An answer of 400 or more, with the reason and the sentence of the API server."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message or f"HTTP {status} {reason}".rstrip())
        self.status = status
        self.reason = reason


class ConflictError(ApiError):
    """409 for a write on an old resource version."""


class AlreadyExistsError(ApiError):
    """409 for a POST of a name that is taken."""


class NotFoundError(ApiError):
    """404."""


class RefusedError(ApiError):
    """400, 403, 409 by a quota, 422: asking again unchanged does not help at once."""


def api_error(status: int, answer: Mapping[str, Any]) -> ApiError:
    """The error that a `Status` object stands for."""
    reason, message = str(answer.get("reason") or ""), str(answer.get("message") or "")
    quota_kind = (answer.get("details") or {}).get("kind") == "resourcequotas"
    if status == 409 and reason == "AlreadyExists":
        return AlreadyExistsError(status, reason, message)
    # 409 on a quota document means that the object was not created, and no other writer's fault.
    if status == 409 and not quota_kind:
        return ConflictError(status, reason, message)
    if status == 404:
        return NotFoundError(status, reason, message)
    if status in (400, 403, 409, 422):
        return RefusedError(status, reason, message)
    return ApiError(status, reason, message)
