"""What the operator asked of the API server, by its own count."""

from collections import Counter

from prometheus_client.parser import text_string_to_metric_families

_METRIC = "kopeck_api_requests_total"
_WRITES = ("post", "put", "patch", "delete")


def api_requests(metrics: str) -> Counter[str]:
    """Requests of a /metrics page, by `verb:resource`, whatever their answer."""
    requests: Counter[str] = Counter()
    for family in text_string_to_metric_families(metrics):
        for sample in family.samples:
            if sample.name == _METRIC:
                named = f"{sample.labels['verb']}:{sample.labels['resource']}"
                requests[named] += int(sample.value)
    return requests


def writes(requests: Counter[str]) -> int:
    return sum(count for named, count in requests.items() if named.partition(":")[0] in _WRITES)
