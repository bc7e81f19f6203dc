"""What pods cost, reckoned from their own timestamps by other means than kopeck's."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from fractions import Fraction
from typing import Any

_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


def recounted_dollars(
    pods: Iterable[Mapping[str, Any]],
    nodes: Mapping[str, Mapping[str, Any]],
    dollars_per_hour: Fraction,
) -> Fraction:
    """Dollars of ended pods on CPU nodes: half of the price by cores, half by memory."""
    return sum((_dollars(pod, nodes, dollars_per_hour) for pod in pods), Fraction(0))


def dollars_of(segments: Iterable[Mapping[str, Any]]) -> Fraction:
    """Dollars of the closed and priced segments of a ledger, as they are stored."""
    return sum((_dollars_of_segment(each) for each in segments), Fraction(0))


def _dollars_of_segment(segment: Mapping[str, Any]) -> Fraction:
    start, end = (datetime.fromisoformat(segment[each]) for each in ("start", "end"))
    rate = Fraction(segment["dollarsPerHour"]) * Fraction(segment["nodeShare"])
    return rate / 3600 * Fraction(str((end - start).total_seconds()))


def _dollars(
    pod: Mapping[str, Any], nodes: Mapping[str, Mapping[str, Any]], dollars_per_hour: Fraction
) -> Fraction:
    capacity = nodes[pod["spec"]["nodeName"]]["status"]["capacity"]
    containers = pod["spec"]["containers"] + pod["spec"]["initContainers"]
    share = sum(
        Fraction(1, 2)
        * sum(_amount(each["resources"]["requests"][resource]) for each in containers)
        / _amount(capacity[resource])
        for resource in ("cpu", "memory")
    )
    return dollars_per_hour / 3600 * share * _seconds_held(pod)


def _seconds_held(pod: Mapping[str, Any]) -> Fraction:
    conditions = {each["type"]: each for each in pod["status"]["conditions"]}
    start = datetime.fromisoformat(conditions["PodScheduled"]["lastTransitionTime"])
    statuses = pod["status"]["containerStatuses"] + pod["status"]["initContainerStatuses"]
    ends = [each["state"]["terminated"]["finishedAt"] for each in statuses]
    end = max(datetime.fromisoformat(each) for each in ends)
    return Fraction((end - start).total_seconds())


def _amount(quantity: str) -> Fraction:
    if quantity[-2:] in _BINARY:
        return Fraction(quantity[:-2]) * _BINARY[quantity[-2:]]
    return Fraction(quantity[:-1]) / 1000 if quantity.endswith("m") else Fraction(quantity)
