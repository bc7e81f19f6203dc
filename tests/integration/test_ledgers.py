"""Ledgers on a real API server: deleted, damaged, or without a price, no dollar is lost or made up.

Each test has an operator of its own, or none: no two of them may work on one cluster.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from kubernetes.aio.client import ApiClient

from kopeck.api.errors import LedgerError
from kopeck.api.job_key import JobKey
from kopeck.control.ledgers import Ledgers
from kopeck.kube.api import Api
from kopeck.kube.cluster import Cluster
from kopeck.kube.connection import connection
from kopeck.kube.errors import ConflictError
from kopeck.pricing.book import NO_PRICES, PriceBook
from tests.builders import NODE_KEY, T0, a_held_pod, a_job, a_report, after
from tests.fake_pods import end_trainer
from tests.operator_process import OperatorProcess
from tests.waiting import eventually
from tests.workplace import Workplace, ledger_path

KEY = JobKey("team", "job", "0123-uid")
NAME = f"kopeck-ledger-{KEY.uid}"
BOOK = PriceBook.model_validate(
    {
        "id": "list",
        "prices": [
            {
                "instanceType": NODE_KEY.instance_type,
                "capacityType": NODE_KEY.capacity_type,
                "dollarsPerHour": "1",
            }
        ],
    }
)
FIRST, SECOND = a_held_pod("first"), a_held_pod("second")
FIRST_ENDED = a_held_pod("first", ended_at=after(hours=1), is_gone=True)


def work_with_ledgers(
    workplace: Workplace,
    work: Callable[[Ledgers], Awaitable[None]],
    *,
    namespace: str | None = None,
    book: PriceBook = BOOK,
) -> None:
    """Let an operator that was just started work with the ledgers of a namespace."""

    async def main() -> None:
        configuration = await connection(workplace.cluster.kubeconfig)
        async with ApiClient(configuration) as client:
            cluster = Cluster(Api(client, lambda *_: None))
            await cluster.ensure_namespace(namespace or workplace.namespace)
            kept_in = namespace or workplace.namespace
            await work(Ledgers(cluster, kept_in, book, lambda: after(minutes=30)))

    asyncio.run(main())


def path_in(namespace: str, name: str = NAME) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps/{name}"


def segments(workplace: Workplace, namespace: str | None = None) -> dict[str, Any]:
    found = workplace.kube.get(path_in(namespace or workplace.namespace))
    stored: dict[str, Any] = json.loads(found["data"]["ledger.json"])["segments"]
    return stored


async def hold_two_pods(ledgers: Ledgers) -> None:
    await ledgers.observe(KEY, [FIRST, SECOND], None, after(minutes=1))


async def see_one_end(ledgers: Ledgers) -> None:
    await ledgers.observe(KEY, [FIRST_ENDED], None, after(hours=2))


def assert_both_are_closed(stored: dict[str, Any]) -> None:
    ends = {uid: (each["end"], each["estimatedEnd"]) for uid, each in stored.items()}
    assert ends == {
        "first": ("2026-01-01T01:00:00Z", False),
        "second": ("2026-01-01T00:30:00Z", True),
    }


def test_a_ledger_that_somebody_deletes_is_made_again_with_all_that_it_said(
    workplace: Workplace,
) -> None:
    async def work(ledgers: Ledgers) -> None:
        await hold_two_pods(ledgers)
        workplace.kube.delete(path_in(workplace.namespace))
        await see_one_end(ledgers)

    work_with_ledgers(workplace, work)
    assert_both_are_closed(segments(workplace))


def test_a_ledger_whose_namespace_is_gone_is_made_again_with_it(workplace: Workplace) -> None:
    namespace = f"{workplace.namespace}-ledgers"
    path = f"/api/v1/namespaces/{namespace}"

    def is_gone() -> None:
        assert workplace.kube.get(path) is None

    async def work(ledgers: Ledgers) -> None:
        await hold_two_pods(ledgers)
        workplace.kube.delete(path)
        eventually(is_gone)
        await see_one_end(ledgers)

    work_with_ledgers(workplace, work, namespace=namespace)
    assert_both_are_closed(segments(workplace, namespace))
    workplace.kube.delete(path)


def test_of_a_ledger_that_another_writer_changes_and_deletes_nothing_is_lost(
    workplace: Workplace,
) -> None:
    path = path_in(workplace.namespace)

    async def work(ledgers: Ledgers) -> None:
        await hold_two_pods(ledgers)
        workplace.kube.patch(path, {"metadata": {"labels": {"seen": "by-another"}}})
        with pytest.raises(ConflictError):
            await see_one_end(ledgers)
        workplace.kube.delete(path)
        await see_one_end(ledgers)

    work_with_ledgers(workplace, work)
    assert_both_are_closed(segments(workplace))


DAMAGES: dict[str, tuple[dict[str, Any], str]] = {
    "half-a-json": ({"data": {"ledger.json": '{"segments": {'}}, "data['ledger.json']: invalid"),
    "empty": ({"data": {"ledger.json": ""}}, "data['ledger.json']: invalid JSON"),
    "a-list": ({"data": {"ledger.json": "[]"}}, "data['ledger.json']: input should be"),
    "no-entry": ({"data": {"ledger.json": None}}, "data['ledger.json'] is missing"),
    "no-data": ({"data": None}, "data['ledger.json'] is missing"),
    "half-a-segment": (
        {"data": {"ledger.json": '{"segments": {"first": {"podUid": "first"}}}'}},
        "data['ledger.json'], segments.first.pod: field required",
    ),
    "no-time": (
        {"metadata": {"annotations": {"kopeck.dev/seen-at": None}}},
        "annotation kopeck.dev/seen-at is missing",
    ),
    "odd-time": (
        {"metadata": {"annotations": {"kopeck.dev/seen-at": "noon"}}},
        "annotation kopeck.dev/seen-at is no time: 'noon'",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_ledger_is_named_and_left_and_charged_on_once_it_is_mended(
    workplace: Workplace, damage: str
) -> None:
    patch, wrong = DAMAGES[damage]
    path = path_in(workplace.namespace)

    async def restarted(ledgers: Ledgers) -> None:
        sound = workplace.kube.get(path)
        damaged = workplace.kube.patch(path, patch)
        with pytest.raises(LedgerError) as told:
            await see_one_end(ledgers)
        assert str(told.value).startswith(f"ledger {workplace.namespace}/{NAME}: {wrong}")
        assert workplace.kube.get(path) == damaged
        annotations = {"annotations": sound["metadata"]["annotations"]}
        workplace.kube.patch(path, {"data": sound["data"], "metadata": annotations})
        await see_one_end(ledgers)

    work_with_ledgers(workplace, hold_two_pods)
    work_with_ledgers(workplace, restarted)
    assert_both_are_closed(segments(workplace))


@pytest.mark.parametrize(
    "patch",
    [
        {"data": {"ledger.json": "{broken"}},
        {"metadata": {"annotations": {"kopeck.dev/job": None}}},
        {"metadata": {"annotations": None}},
    ],
    ids=["json", "job", "annotations"],
)
def test_a_damaged_ledger_keeps_no_other_from_being_settled_when_an_operator_starts(
    workplace: Workplace, patch: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    others = [KEY._replace(uid=uid) for uid in ("0000-uid", "zzzz-uid")]

    async def hold(ledgers: Ledgers) -> None:
        await hold_two_pods(ledgers)
        for other in others:
            await ledgers.observe(other, [FIRST], None, T0)

    async def settle(ledgers: Ledgers) -> None:
        await ledgers.settle_orphans(set())

    work_with_ledgers(workplace, hold)
    workplace.kube.patch(path_in(workplace.namespace), patch)
    with caplog.at_level(logging.ERROR):
        work_with_ledgers(workplace, settle)
    (told,) = [each for each in caplog.messages if each.startswith("ledger ")]
    assert f"{workplace.namespace}/{NAME}: " in told
    for other in others:
        path = path_in(workplace.namespace, f"kopeck-ledger-{other.uid}")
        text = workplace.kube.get(path)["data"]["ledger.json"]
        assert json.loads(text)["segments"]["first"]["estimatedEnd"]


def test_the_ledger_of_a_deleted_job_gets_a_price_that_is_known_late(workplace: Workplace) -> None:
    async def end_unpriced(ledgers: Ledgers) -> None:
        await ledgers.observe(KEY, [FIRST_ENDED], None, after(hours=1))

    async def settle(ledgers: Ledgers) -> None:
        await ledgers.settle_orphans(set())

    work_with_ledgers(workplace, end_unpriced, book=NO_PRICES)
    assert "dollarsPerHour" not in segments(workplace)["first"]
    work_with_ledgers(workplace, settle)
    stored = segments(workplace)["first"]
    assert (stored["dollarsPerHour"], stored["priceBook"]) == ("1", "list")


def test_a_price_that_is_known_late_is_of_attempts_whose_pods_are_gone_too(
    workplace: Workplace, tmp_path: Path
) -> None:
    kubeconfig = workplace.cluster.kubeconfig
    with OperatorProcess(kubeconfig, tmp_path, prices=None) as unpriced:
        unpriced.wait_until_in_sync()
        name = workplace.create(a_job())
        _, second = workplace.running_pods(name, attempt=0, count=2)
        end_trainer(workplace.kube, second, 137, a_report())
        for pod in workplace.running_pods(name, attempt=1, count=2):
            end_trainer(workplace.kube, pod, 0, a_report())
        workplace.reaches(name, "Complete")
        eventually(lambda: is_not_priced(workplace, name))
        assert workplace.pods(name, attempt=0) == []
    with OperatorProcess(kubeconfig, tmp_path):
        eventually(lambda: all_is_priced(workplace, name))


def is_not_priced(workplace: Workplace, name: str) -> None:
    known = workplace.condition(name, "PriceKnown")
    assert (known["status"], known["reason"]) == ("False", "NoPrice")
    assert "instanceType kopeck.local, region (no label)" in known["message"]
    assert "spent" not in workplace.status(name)["cost"]
    assert all("end" in each for each in workplace.ledger(name)["segments"].values())


def all_is_priced(workplace: Workplace, name: str) -> None:
    assert workplace.condition(name, "PriceKnown")["status"] == "True"
    stored = workplace.ledger(name)["segments"].values()
    assert sorted(each["attempt"] for each in stored) == [0, 0, 1, 1]
    assert {each["dollarsPerHour"] for each in stored} == {"3.60"}
    assert Decimal(workplace.status(name)["cost"]["spent"]) > 0


def test_a_job_whose_ledger_is_damaged_trains_on_and_is_charged_for_all_once_it_is_mended(
    workplace: Workplace, tmp_path: Path
) -> None:
    with OperatorProcess(workplace.cluster.kubeconfig, tmp_path) as operator:
        operator.wait_until_in_sync()
        name = workplace.create(a_job())
        workplace.running_pods(name, attempt=0, count=2)
        eventually(lambda: is_priced(workplace, name))
        operator.stop()
        path = ledger_path(workplace.job(name)["metadata"]["uid"])
        sound = workplace.kube.get(path)
        damaged = workplace.kube.patch(path, {"data": {"ledger.json": "{broken"}})

        operator.start()
        eventually(lambda: is_named(workplace, name, path))
        assert path.rpartition("/")[2] in operator.log
        other = workplace.create(a_job("other"))
        eventually(lambda: is_priced(workplace, other))
        _, second = workplace.pods(name, attempt=0)
        end_trainer(workplace.kube, second, 137, a_report())
        workplace.running_pods(name, attempt=1, count=2)
        assert workplace.kube.get(path) == damaged

        workplace.kube.patch(path, {"data": sound["data"]})
        eventually(lambda: is_priced(workplace, name))
        stored = workplace.ledger(name)["segments"].values()
        closed = sorted((each["attempt"], "end" in each) for each in stored)
        assert closed == [(0, True), (0, True), (1, False), (1, False)]


def is_priced(workplace: Workplace, name: str) -> None:
    assert workplace.condition(name, "PriceKnown")["status"] == "True"
    assert "spent" in workplace.status(name)["cost"]


def is_named(workplace: Workplace, name: str, path: str) -> None:
    known = workplace.condition(name, "PriceKnown")
    assert (known["status"], known["reason"]) == ("False", "LedgerDamaged")
    assert f"kopeck-system/{path.rpartition('/')[2]}" in known["message"]
    cost = workplace.status(name)["cost"]
    assert cost.keys() == {"spentAtLeast", "asOf"}
