"""What an answer of the API server means for whoever asked."""

from typing import Any

import pytest

from kopeck.kube.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    NotFoundError,
    RefusedError,
    api_error,
)


def a_status(reason: str = "", message: str = "no", **fields: Any) -> dict[str, Any]:
    return {"kind": "Status", "reason": reason, "message": message, **fields}


@pytest.mark.parametrize(
    ("status", "reason", "kind"),
    [
        (409, "Conflict", ConflictError),
        (409, "AlreadyExists", AlreadyExistsError),
        (404, "NotFound", NotFoundError),
        (400, "BadRequest", RefusedError),
        (403, "Forbidden", RefusedError),
        (422, "Invalid", RefusedError),
        (401, "Unauthorized", ApiError),
        (410, "Expired", ApiError),
        (429, "TooManyRequests", ApiError),
        (500, "InternalError", ApiError),
        (503, "ServiceUnavailable", ApiError),
    ],
)
def test_each_answer_is_an_error_of_its_own_kind(
    status: int, reason: str, kind: type[ApiError]
) -> None:
    error = api_error(status, a_status(reason))
    assert type(error) is kind
    assert (error.status, error.reason) == (status, reason)


def test_a_conflict_on_a_quota_created_nothing_and_is_a_refusal() -> None:
    answer = a_status("Conflict", details={"kind": "resourcequotas", "name": "few"})
    assert type(api_error(409, answer)) is RefusedError


def test_the_api_servers_own_sentence_is_kept() -> None:
    assert str(api_error(403, a_status(message="exceeded quota: few"))) == "exceeded quota: few"


def test_an_answer_without_a_sentence_says_at_least_its_code() -> None:
    assert str(api_error(503, {})) == "HTTP 503"
    nothing = {"reason": "ServiceUnavailable", "message": None, "details": None}
    assert str(api_error(503, nothing)) == "HTTP 503 ServiceUnavailable"
