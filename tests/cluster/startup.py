"""The order in which a cluster comes up: what is slow and cached first, then all at once."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from tests.cluster.addresses import Addresses
from tests.cluster.binaries import binary
from tests.cluster.commands import missing
from tests.cluster.containers import store_template
from tests.cluster.controlplane import HOST_ADDRESS, choose_endpoint, start_control_plane
from tests.cluster.endpoint import Endpoint
from tests.cluster.images import write_kopeck_image
from tests.cluster.network import start_names, start_proxy, wait_for_names, write_bridge_config
from tests.cluster.nodes import Node, prepare_kubelet, start_kubelet, start_runtime
from tests.cluster.packages import provide_packages
from tests.cluster.place import Place
from tests.cluster.progress import step
from tests.cluster.record import Record, write
from tests.cluster.rootfs import rootfs_layer
from tests.cluster.sandbox import connect, cover_host_folders, open_sandbox
from tests.cluster.site_packages import site_packages
from tests.cluster.waiting import wait_until


def prepare(*, nodes: int, kwok: bool) -> None:
    """Fill the cache with what such a cluster needs, before anything of it runs."""
    binary("kubernetes")
    if kwok:
        binary("kwok")
    if nodes:
        provide_packages()
        binary("coredns")
        binary("pause")
        rootfs_layer()
        site_packages("exporter")
        site_packages("trainer")


def is_isolated(nodes: int) -> bool:
    """Whether the cluster gets namespaces of its own: always with nodes, else where it may."""
    may = os.geteuid() == 0 and not missing(["ip", "unshare", "nsenter"])
    return nodes > 0 or may


def start_on_host(state: Path, record: Record) -> Record:
    """A control plane alone, without root: its processes are the host's."""
    endpoint = choose_endpoint(state, HOST_ADDRESS)
    record = write(state, replace(record, endpoint=endpoint))
    with step("Starting Kubernetes"):
        start_control_plane(Place(state), endpoint)
    return record


def start_in_sandbox(state: Path, record: Record) -> Record:
    """A control plane, with real nodes if any were asked for."""
    init = open_sandbox(state)
    place = Place(state, init)
    cover_host_folders(place)
    template = store_template(place) if record.node_count else None
    with step("Starting Kubernetes"):
        addresses = connect(place, init, record.node_count)
        endpoint = choose_endpoint(state, addresses.api_server)
        record = write(state, replace(record, network=addresses.number, endpoint=endpoint))
        with ThreadPoolExecutor() as pool:
            control_plane = pool.submit(start_control_plane, place, endpoint)
            if template:
                _start_runtimes(place, record.nodes, addresses, template)
            kubeconfig = control_plane.result()
        if record.node_count:
            _start_nodes(place, record.nodes, addresses, endpoint, kubeconfig)
    return record


def _start_runtimes(place: Place, nodes: list[Node], addresses: Addresses, template: Path) -> None:
    write_bridge_config(place.state, addresses)
    image = write_kopeck_image(place.state)
    with ThreadPoolExecutor() as pool:
        starts = [pool.submit(start_runtime, place, node, template, image) for node in nodes]
        for started in starts:
            started.result()
    image.unlink()


def _start_nodes(
    place: Place, nodes: list[Node], addresses: Addresses, endpoint: Endpoint, kubeconfig: Path
) -> None:
    coredns = start_names(place, addresses, kubeconfig)
    proxy = start_proxy(place, nodes[0].name, addresses, kubeconfig)
    kubelets = []
    for node in nodes:
        prepare_kubelet(place, node, addresses)
        kubelets.append(start_kubelet(place, node, kubeconfig))
    wait_for_names(addresses, coredns)
    wait_until(
        lambda: list(endpoint.nodes().values()) == [True] * len(nodes),
        "the nodes to be ready",
        watched=[*kubelets, proxy],
    )
