"""Asking servers that may not answer yet, for whoever waits with `eventually`."""

from typing import Any

import requests

_SECONDS = 10


def answer_of(address: str, **parameters: str) -> requests.Response:
    """Raises AssertionError where there is none."""
    try:
        answer = requests.get(address, params=parameters, timeout=_SECONDS)
        answer.raise_for_status()
    except requests.RequestException as error:
        raise AssertionError(f"{address} does not answer") from error
    return answer


def queried(prometheus_url: str, query: str) -> list[dict[str, Any]]:
    """Prometheus' series. Raises AssertionError where it does not answer."""
    answer = answer_of(f"{prometheus_url}/api/v1/query", query=query).json()
    series: list[dict[str, Any]] = answer["data"]["result"]
    return series
