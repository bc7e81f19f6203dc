"""One request to the API server: JSON in, JSON out, tried again where that may help."""

import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

import aiohttp
from kubernetes.aio.client import ApiClient
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt
from tenacity.wait import wait_base, wait_exponential, wait_random

from kopeck.kube.errors import ApiError, api_error

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

_TIMEOUT_SECONDS = 15.0
_ATTEMPTS = 6
_BACKOFF = wait_exponential(multiplier=0.1, max=5) + wait_random(0, 0.1)


class _TransientError(ApiError):
    """429 or 5xx: the same request may succeed later."""

    def __init__(self, error: ApiError, retry_after_seconds: float) -> None:
        super().__init__(error.status, error.reason, str(error))
        self.retry_after_seconds = retry_after_seconds


class _WaitAsTold(wait_base):
    """As long as Retry-After says, and at least the backoff."""

    def __call__(self, retry_state: RetryCallState) -> float:
        error = retry_state.outcome.exception() if retry_state.outcome else None
        told = error.retry_after_seconds if isinstance(error, _TransientError) else 0.0
        return max(told, _BACKOFF(retry_state))


class Api:
    """The API server."""

    def __init__(self, client: ApiClient, observe: Callable[[str, str, int], None]) -> None:
        """`observe` is told method, path and HTTP status of every answer; 0 is none."""
        self._client = client
        self._observe = observe

    async def request(  # noqa: PLR0913  the parts of a request
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = JSON,
        attempts: int = _ATTEMPTS,
    ) -> Any:
        """The decoded answer. Raises ApiError for 400 and above, after retries where they help."""
        retrying = AsyncRetrying(
            retry=retry_if_exception(_may_succeed_later),
            wait=_WaitAsTold(),
            stop=stop_after_attempt(attempts),
            reraise=True,
        )
        url = path + (f"?{urlencode(query)}" if query else "")
        headers = {"Content-Type": content_type, "Accept": JSON}
        async for attempt in retrying:
            with attempt:
                return await self._request_once(method, url, headers, body)
        raise AssertionError("tenacity raises the last error")

    async def _request_once(
        self, method: str, url: str, headers: Mapping[str, str], body: Any
    ) -> Any:
        request = dict(headers)
        await self._client.update_params_for_auth(request, [], ["BearerToken"], url, method, body)
        status = 0
        try:
            response = await self._client.call_api(
                method,
                self._client.configuration.host + url,
                header_params=request,
                body=body,
                _request_timeout=_TIMEOUT_SECONDS,
            )
            status = response.status
            content = await response.read()
        finally:
            self._observe(method, url.partition("?")[0], status)
        if status < 400:
            return json.loads(content) if content else {}
        error = api_error(status, _status_object(content))
        if status == 429 or status >= 500:
            raise _TransientError(error, _seconds(response.getheader("Retry-After")))
        raise error


def _may_succeed_later(error: BaseException) -> bool:
    return isinstance(error, (_TransientError, aiohttp.ClientError, TimeoutError))


def _status_object(content: bytes) -> dict[str, Any]:
    """The answer's `Status`; a proxy in between may say something else."""
    try:
        answer = json.loads(content)
    except ValueError:
        return {"message": content.decode(errors="replace")[:500]}
    return answer if isinstance(answer, dict) else {}


def _seconds(retry_after: str | None) -> float:
    return float(retry_after) if retry_after and retry_after.isdigit() else 0.0
