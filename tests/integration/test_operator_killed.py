"""An operator that is killed at each of its writes, and started again, loses and repeats nothing.

Each of its lives makes one write that no life before it made, and ends there: in one run once the
API server did it but before the answer, in the other after the answer and before its next write.
"""

import asyncio
import json
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import pytest
from aiohttp import web

from tests.api_proxy import ApiProxy, Call, DroppedError, Forward
from tests.builders import a_job, a_report
from tests.fake_pods import end_trainer, path_of
from tests.operator_process import OperatorProcess
from tests.platforms import PLATFORMS, a_job_on, create_nodes
from tests.waiting import eventually
from tests.workplace import Workplace

Result = TypeVar("Result")

NAME = "job"
PEER_LOST = 181
SIGKILLED = a_report(
    exitClass="failed",
    firstFailure={"rank": 1, "exitCode": 137, "signal": "SIGKILL"},
    message="rank 1 was ended by SIGKILL",
    step=15,
    samples=240,
    checkpointStep=10,
)
# Half the node is its 32 cores, half its 128 GiB; trainer and sidecar ask for these parts.
_SHARE_OF_A_POD = (Decimal("0.6") / 32 + (Decimal(1) + Decimal(64) / 1024) / 128) / 2
_DOLLARS_PER_SECOND_OF_A_POD = Decimal("3.60") / 3600 * _SHARE_OF_A_POD


class KillAtEachNewWrite:
    """An interception of what concerns a namespace: one new write a life.

    A repetition of an earlier write, such as creating what is there, passes: a life that ended
    there would never get further.
    """

    def __init__(self, operator: OperatorProcess, namespace: str, *, is_answered: bool) -> None:
        self._operator = operator
        self._namespace = namespace
        self._is_answered = is_answered
        self._made: set[Call] = set()
        self._has_written = False
        self._is_dead = False
        self._one_at_a_time = asyncio.Lock()
        # Killing happens in the proxy's thread, reviving in the test's.
        self._life_and_death = threading.Lock()
        self.kills = 0

    async def __call__(self, call: Call, forward: Forward) -> web.StreamResponse:
        if not (call.is_write and call.names(self._namespace)):
            return await forward()
        async with self._one_at_a_time:
            if self._is_dead:
                raise DroppedError
            return await self._write(call, forward)

    async def _write(self, call: Call, forward: Forward) -> web.StreamResponse:
        if call in self._made:
            return await forward()
        if self._has_written:
            self._kill()
        answer = await forward()
        self._made.add(call)
        self._has_written = True
        if not self._is_answered:
            self._kill()
        return answer

    def _kill(self) -> NoReturn:
        with self._life_and_death:
            self._operator.kill()
            self._is_dead = True
            self.kills += 1
        raise DroppedError

    def revive(self) -> None:
        """Start the operator again if it was killed; fails if it ended by itself."""
        with self._life_and_death:
            if self._operator.is_running:
                return
            ended = self._operator.wait_until_ended(seconds=0)
            assert ended == -signal.SIGKILL, self._operator.log
            self._operator.start()
            self._is_dead = self._has_written = False


@dataclass
class MortalOperator:
    """An operator behind a proxy, and who kills it."""

    process: OperatorProcess
    proxy: ApiProxy
    killer: KillAtEachNewWrite

    def eventually(self, check: Callable[[], Result]) -> Result:
        """What `check` returns once it holds, over as many lives as it takes."""

        def alive_and_checked() -> Result:
            self.killer.revive()
            return check()

        return eventually(alive_and_checked, seconds=240)


@pytest.fixture(params=[False, True], ids=["unanswered", "answered"])
def operator(
    request: pytest.FixtureRequest, workplace: Workplace, tmp_path: Path
) -> Iterator[MortalOperator]:
    with ApiProxy(workplace.cluster.kubeconfig, tmp_path) as proxy:
        process = OperatorProcess(proxy.kubeconfig, tmp_path, refresh_seconds=60)
        killer = KillAtEachNewWrite(process, workplace.namespace, is_answered=request.param)
        proxy.interception = killer
        with process:
            yield MortalOperator(process, proxy, killer)


def test_an_operator_killed_at_each_of_its_writes_loses_and_repeats_nothing(
    workplace: Workplace, operator: MortalOperator
) -> None:
    workplace.create(a_job(NAME))
    failed = _one_rank_fails(workplace, operator)
    vanished = _one_pod_vanishes(workplace, operator)
    completed = _it_completes(workplace, operator)
    operator.eventually(lambda: _all_is_charged(workplace))

    assert operator.killer.kills > 20
    _nothing_was_made_twice(workplace, operator.proxy)
    _no_count_is_lost(workplace, operator.proxy)
    _spend_is_unbroken(workplace, [*failed, *completed])
    _what_nobody_saw_is_uncertain(workplace, vanished)


def test_an_operator_killed_at_each_write_of_a_start_gives_all_pods_the_same_for_nccl(
    workplace: Workplace, operator: MortalOperator
) -> None:
    (azure,) = [each for each in PLATFORMS if each.name == "azure-nd-h100-v5"]
    selected = {"pool": workplace.namespace}
    nodes = create_nodes(workplace.cluster, azure, **selected)
    workplace.create(a_job_on(selected, NAME))
    first, second = operator.eventually(lambda: _running_pods(workplace, attempt=0))
    assert operator.killer.kills > 6
    for part in ("env", "resources", "volumeMounts"):
        one, other = (pod["spec"]["containers"][0][part] for pod in (first, second))
        assert one == other
    assert first["spec"]["containers"][0]["resources"]["limits"]["rdma/shared_ib"] == "1"
    effective = workplace.status(NAME)["effective"]
    _are_made_once(
        workplace,
        operator.proxy,
        {first["metadata"]["name"], second["metadata"]["name"], effective["nccl"]["configMap"]},
    )
    workplace.kube.delete(f"{workplace.jobs_path}/{NAME}")
    operator.eventually(lambda: _is_gone(workplace))
    workplace.cluster.kubectl("delete", "node", *nodes)


def _is_gone(workplace: Workplace) -> None:
    assert workplace.kube.get(f"{workplace.jobs_path}/{NAME}") is None
    assert workplace.pods(NAME) == []


@dataclass(frozen=True)
class Seen:
    """A pod as the test saw it: from its node to its end."""

    name: str
    start: datetime
    end: datetime

    @property
    def dollars(self) -> Decimal:
        return _dollars(self.start, self.end)


def _one_rank_fails(workplace: Workplace, operator: MortalOperator) -> list[Seen]:
    """Let attempt 0 fail; its pods."""
    first, second = operator.eventually(lambda: _running_pods(workplace, attempt=0))
    return [
        _end(workplace, first, PEER_LOST, a_report(exitClass="peer-lost", checkpointStep=10)),
        _end(workplace, second, 137, SIGKILLED),
    ]


def _one_pod_vanishes(workplace: Workplace, operator: MortalOperator) -> Seen:
    """Delete a pod of attempt 1 by force while no operator is there to see it; that pod."""
    first, _ = operator.eventually(lambda: _running_pods(workplace, attempt=1))
    assert workplace.status(NAME)["training"]["samples"] == 10 * 16
    operator.process.kill()
    workplace.kube.delete(path_of(first), grace_seconds=0)
    return Seen(first["metadata"]["name"], _scheduled_at(first), datetime.now(UTC))


def _it_completes(workplace: Workplace, operator: MortalOperator) -> list[Seen]:
    """Let attempt 2 end well; its pods."""
    pods = operator.eventually(lambda: _running_pods(workplace, attempt=2))
    completed = [_end(workplace, pod, 0, a_report()) for pod in pods]
    operator.eventually(lambda: _is_complete(workplace))
    return completed


def _running_pods(workplace: Workplace, attempt: int) -> list[dict[str, Any]]:
    pods, status = workplace.pods(NAME, attempt), workplace.status(NAME)
    assert [pod["status"].get("phase") for pod in pods] == ["Running", "Running"], status
    assert (status["attempt"], status["phase"]) == (attempt, "Running"), status
    return pods


def _is_complete(workplace: Workplace) -> None:
    status = workplace.status(NAME)
    assert status["phase"] == "Complete", status


def _end(workplace: Workplace, pod: dict[str, Any], exit_code: int, report: dict[str, Any]) -> Seen:
    now = datetime.now(UTC).replace(microsecond=0)
    finished_at = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    end_trainer(workplace.kube, pod, exit_code, report, finished_at=finished_at)
    return Seen(pod["metadata"]["name"], _scheduled_at(pod), now)


def _scheduled_at(pod: dict[str, Any]) -> datetime:
    conditions = {each["type"]: each for each in pod["status"]["conditions"]}
    return datetime.fromisoformat(conditions["PodScheduled"]["lastTransitionTime"])


def _all_is_charged(workplace: Workplace) -> None:
    """Nothing is held any more, and status says what the ledger adds up to."""
    segments = _segments(workplace).values()
    assert all("end" in segment for segment in segments), segments
    by_ledger = sum((_dollars_of(segment) for segment in segments), Decimal(0))
    spent = Decimal(workplace.status(NAME)["cost"]["spent"])
    assert abs(spent - by_ledger) <= by_ledger / 1000, (spent, by_ledger)


def _nothing_was_made_twice(workplace: Workplace, proxy: ApiProxy) -> None:
    _are_made_once(workplace, proxy, _all_pods(workplace.job(NAME)["metadata"]["uid"]))


def _are_made_once(workplace: Workplace, proxy: ApiProxy, names: set[str]) -> None:
    """Those names, Service, revision and ledger, each once and nothing else but events."""
    uid = workplace.job(NAME)["metadata"]["uid"]
    service = f"{NAME}-{uid[:5]}"
    config = f"{service}-{workplace.status(NAME)['effective']['revision']}"
    made = Counter(
        json.loads(write.call.body)["metadata"]["name"]
        for write in proxy.writes
        if write.status == 201 and write.call.names(workplace.namespace)
    )
    told = {name for name in made if name.startswith(f"{NAME}.")}
    assert made.keys() - told == {service, config, f"kopeck-ledger-{uid}", *names}
    assert set(made.values()) == {1}, made


def _all_pods(uid: str) -> set[str]:
    attempts, workers = (0, 1, 2), (0, 1)
    return {f"{NAME}-{uid[:5]}-a{attempt}-w{worker}" for attempt in attempts for worker in workers}


def _no_count_is_lost(workplace: Workplace, proxy: ApiProxy) -> None:
    status = workplace.status(NAME)
    assert status["attempt"] == 2
    assert status["restarts"] == {"failures": 1, "total": 2}
    failure = status["lastFailure"]
    assert (failure["attempt"], failure["worker"], failure["rank"]) == (0, 1, 1)
    assert (failure["exitCode"], failure["signal"]) == (137, "SIGKILL")
    assert failure["message"] == SIGKILLED["message"]
    assert status["restartReason"] == "PodLost"
    assert status["training"]["samples"] == 320
    assert _attempts_begun(workplace, proxy) == [1, 2]


def _attempts_begun(workplace: Workplace, proxy: ApiProxy) -> list[int]:
    """Attempts in the order in which they were written to status; 0 is there from the start."""
    patches = [
        json.loads(write.call.body)
        for write in proxy.writes
        if write.call.path == f"{workplace.jobs_path}/{NAME}/status" and write.status == 200
    ]
    attempts = [patch["status"].get("attempt") for patch in patches]
    return [attempt for attempt in attempts if attempt]


def _spend_is_unbroken(workplace: Workplace, seen: list[Seen]) -> None:
    """Each pod is charged once; nothing is estimated where a pod said when it ended."""
    segments = _segments(workplace)
    assert segments.keys() == _all_pods(workplace.job(NAME)["metadata"]["uid"])
    assert not any(segments[pod.name]["estimatedEnd"] for pod in seen), segments
    charged = sum((_dollars_of(segments[pod.name]) for pod in seen), Decimal(0))
    recount = sum((pod.dollars for pod in seen), Decimal(0))
    assert abs(charged - recount) <= recount / 1000, (charged, recount)


def _what_nobody_saw_is_uncertain(workplace: Workplace, vanished: Seen) -> None:
    """The end of a pod that vanished unseen is estimated, and its doubtful part is shown."""
    segments = _segments(workplace)
    segment = segments[vanished.name]
    assert segment["estimatedEnd"]
    assert _time(segment["start"]) == vanished.start
    assert _time(segment["end"]) <= vanished.end <= _time(segment["uncertainUntil"])
    uncertain = sum((_uncertain_dollars_of(each) for each in segments.values()), Decimal(0))
    shown = Decimal(workplace.status(NAME)["cost"]["uncertain"])
    assert uncertain > 0
    assert abs(shown - uncertain) <= uncertain / 1000, (shown, uncertain)


def _segments(workplace: Workplace) -> dict[str, dict[str, Any]]:
    """The ledger by pod names."""
    segments = workplace.ledger(NAME)["segments"].values()
    by_name = {segment["pod"]: segment for segment in segments}
    assert len(by_name) == len(segments), segments
    return by_name


def _dollars_of(segment: dict[str, Any]) -> Decimal:
    return _dollars(_time(segment["start"]), _time(segment["end"]))


def _uncertain_dollars_of(segment: dict[str, Any]) -> Decimal:
    if "uncertainUntil" not in segment:
        return Decimal(0)
    return _dollars(_time(segment["end"]), _time(segment["uncertainUntil"]))


def _dollars(start: datetime, end: datetime) -> Decimal:
    return _DOLLARS_PER_SECOND_OF_A_POD * Decimal(str((end - start).total_seconds()))


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
