"""The operator: everything put together, until SIGTERM."""

import asyncio
import logging
import signal
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta

from kubernetes.aio.client import ApiClient, Configuration

from kopeck.control.actions import Actions
from kopeck.control.cache import Cache
from kopeck.control.dirty_queue import DirtyQueue
from kopeck.control.figures import Figures
from kopeck.control.gpu_nodes import GpuNodes
from kopeck.control.health import Health
from kopeck.control.ledgers import Ledgers
from kopeck.control.metrics import OperatorMetrics
from kopeck.control.nodes import Nodes
from kopeck.control.reconcile import Reconciler
from kopeck.control.server import serve
from kopeck.control.settings import OperatorSettings
from kopeck.control.surroundings import SurroundingsReader
from kopeck.control.sync import Sync
from kopeck.control.watch import Watch
from kopeck.control.workers import Workers
from kopeck.kube.api import Api
from kopeck.kube.cluster import Cluster
from kopeck.kube.errors import NotFoundError
from kopeck.plan.pods import Sidecar
from kopeck.pricing.book import NO_PRICES, read_price_book

_log = logging.getLogger("kopeck.operator")

_FIRST_LIST_RETRY_SECONDS = 2.0


def _now() -> datetime:
    return datetime.now(UTC)


async def run_operator(configuration: Configuration, settings: OperatorSettings) -> None:
    """Run until SIGTERM or SIGINT. Raises ConfigError for a wrong price book."""
    book = read_price_book(settings.price_book) if settings.price_book else NO_PRICES
    cache, queue = Cache(), DirtyQueue()
    sync: Sync
    metrics = OperatorMetrics(cache, lambda: queue.depth, lambda: sync.last_event_unix_seconds)
    async with ApiClient(configuration) as client:
        cluster = Cluster(Api(client, metrics.count_request))
        watch = Watch(configuration)
        sync = Sync(cluster, cache, queue, _now, watch.restart)
        ledgers = Ledgers(cluster, settings.namespace, book, _now)
        reconciler = Reconciler(
            cluster=cluster,
            cache=cache,
            ledgers=ledgers,
            nodes=Nodes(cluster),
            actions=Actions(cluster, cache),
            figures=Figures(cluster, timedelta(seconds=settings.refresh_seconds)),
            surroundings=SurroundingsReader(cluster, GpuNodes(cluster)),
            sidecar=Sidecar(settings.exporter_image, settings.dcgm_endpoint),
            pods_known_until=lambda: sync.pods_known_until,
        )
        health = Health(queue, lambda: watch.is_alive and sync.watch_owes_nothing())
        workers = Workers(
            reconciler.reconcile, cluster.job, queue, cache, metrics.reconcile_seconds
        )
        stopped = _stopped_by_signal()
        runner, port = await serve(settings.port, metrics.registry, health.what_is_wrong)
        _log.info("serving /metrics and /healthz on port %d", port)
        try:
            first = _first_lists(sync, ledgers, cluster, settings.namespace)
            if await _until(stopped, first):
                _log.info("in sync, watching")
                watching = watch.run(sync.see_job, sync.see_pod)
                parts = (sync.run(), watching, health.run(), workers.run())
                await _until(stopped, *parts)
        finally:
            await runner.cleanup()


async def _until(stopped: asyncio.Event, *parts: Coroutine[None, None, None]) -> bool:
    """Run parts beside each other until one ends, True, or we are stopped, False."""
    stop = asyncio.create_task(stopped.wait())
    tasks = [asyncio.create_task(part) for part in parts]
    await asyncio.wait([stop, *tasks], return_when=asyncio.FIRST_COMPLETED)
    ended = [task for task in tasks if task.done()]
    for task in (stop, *tasks):
        task.cancel()
    await asyncio.gather(stop, *tasks, return_exceptions=True)
    for task in ended:
        task.result()
    return not stopped.is_set()


async def _first_lists(sync: Sync, ledgers: Ledgers, cluster: Cluster, namespace: str) -> None:
    """What a restarted operator needs to know before it decides anything."""
    while True:
        try:
            await cluster.ensure_namespace(namespace)
            await sync.list_everything(finished_too=True)
            await ledgers.settle_orphans(sync.known_uids())
        except NotFoundError:
            _log.warning("no TrainingJobs in this cluster yet; kubectl apply -f crds/")
            await asyncio.sleep(_FIRST_LIST_RETRY_SECONDS)
        except Exception as error:  # noqa: BLE001  the API server may come later
            _log.warning("not in sync yet: %s", error)
            await asyncio.sleep(_FIRST_LIST_RETRY_SECONDS)
        else:
            return


def _stopped_by_signal() -> asyncio.Event:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    return stopped
