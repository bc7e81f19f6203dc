"""etcd, API server, controller manager and scheduler, and the kubeconfig that reaches them."""

import json
import socket
from pathlib import Path
from secrets import token_hex

from tests.cluster.addresses import SERVICE_NETWORK
from tests.cluster.binaries import binary
from tests.cluster.commands import missing, run
from tests.cluster.endpoint import Endpoint
from tests.cluster.errors import MissingError
from tests.cluster.place import Place
from tests.cluster.processes import Process
from tests.cluster.waiting import wait_until

HOST_ADDRESS = "127.0.0.1"


def choose_endpoint(state: Path, address: str) -> Endpoint:
    """An endpoint on this address: any free port on the host, the usual one in a sandbox."""
    port = free_port() if address == HOST_ADDRESS else 6443
    return Endpoint(address, port, token_hex(16), str(state / "secrets/apiserver.crt"))


def free_port() -> int:
    """A TCP port of the host that nobody uses now."""
    with socket.socket() as probe:
        probe.bind((HOST_ADDRESS, 0))
        return int(probe.getsockname()[1])


def start_control_plane(place: Place, endpoint: Endpoint) -> Path:
    """Start all four and return the kubeconfig once the API server is ready."""
    secrets = place.state / "secrets"
    secrets.mkdir(mode=0o700)
    (secrets / "tokens.csv").write_text(f'{endpoint.token},admin,admin,"system:masters"\n')
    _write_service_account_key(secrets / "service-accounts.key")
    on_host = endpoint.address == HOST_ADDRESS
    etcd_ports = (free_port(), free_port()) if on_host else (2379, 2380)
    etcd = _start_etcd(place, etcd_ports)
    api_server = _start_api_server(place, endpoint, etcd_ports[0])
    wait_until(lambda: _is_ready(endpoint), "the API server", watched=[etcd, api_server])
    _write_authority(secrets)
    kubeconfig = endpoint.write_kubeconfig(place.state / "kubeconfig")
    _start_controller_manager(place, kubeconfig)
    _start_scheduler(place, kubeconfig)
    return kubeconfig


def _write_service_account_key(path: Path) -> None:
    if missing(["openssl"]):
        raise MissingError("`openssl` is missing; install the package openssl")
    run(["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", path])


def _start_etcd(place: Place, ports: tuple[int, int]) -> Process:
    client, peer = (f"http://{HOST_ADDRESS}:{port}" for port in ports)
    return place.start(
        "etcd",
        binary("kubernetes"),
        "etcd",
        f"--data-dir={place.state / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",  # its data ends with the cluster
    )


def _start_api_server(place: Place, endpoint: Endpoint, etcd_port: int) -> Process:
    secrets = place.state / "secrets"
    key = secrets / "service-accounts.key"
    # A loopback address cannot be the endpoint of the Service `kubernetes`; no pod is there to
    # miss it.
    on_host = endpoint.address == HOST_ADDRESS
    reconciler = ["--endpoint-reconciler-type=none"] if on_host else []
    return place.start(
        "kube-apiserver",
        binary("kubernetes"),
        "kube-apiserver",
        f"--etcd-servers=http://{HOST_ADDRESS}:{etcd_port}",
        f"--cert-dir={secrets}",
        f"--bind-address={endpoint.address}",
        f"--advertise-address={endpoint.address}",
        f"--secure-port={endpoint.port}",
        f"--token-auth-file={secrets / 'tokens.csv'}",
        "--authorization-mode=Node,RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}",
        f"--service-cluster-ip-range={SERVICE_NETWORK}",
        "--kubelet-preferred-address-types=InternalIP",
        "--allow-privileged=true",
        # At their defaults these, and not what is measured, would be a benchmark's limit.
        "--max-requests-inflight=2000",
        "--max-mutating-requests-inflight=1000",
        "--profiling=false",
        *reconciler,
    )


def _write_authority(secrets: Path) -> None:
    """Take the authority's certificate out of the file where its own comes before it."""
    begin = "-----BEGIN"
    *_, last = (secrets / "apiserver.crt").read_text().split(begin)
    (secrets / "authority.crt").write_text(begin + last)


def _is_ready(endpoint: Endpoint) -> bool:
    answer = endpoint.get("/readyz")
    return answer is not None and answer.ok


def _start_controller_manager(place: Place, kubeconfig: Path) -> Process:
    secrets = place.state / "secrets"
    return place.start(
        "kube-controller-manager",
        binary("kubernetes"),
        "kube-controller-manager",
        f"--kubeconfig={kubeconfig}",
        f"--service-account-private-key-file={secrets / 'service-accounts.key'}",
        f"--root-ca-file={secrets / 'authority.crt'}",
        "--use-service-account-credentials",
        "--leader-elect=false",
        "--secure-port=0",
        # Its default of 20 requests a second would be a benchmark's limit.
        "--kube-api-qps=500",
        "--kube-api-burst=500",
        "--concurrent-job-syncs=20",
    )


def _start_scheduler(place: Place, kubeconfig: Path) -> Process:
    config = place.state / "scheduler.json"
    config.write_text(
        json.dumps(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "leaderElection": {"leaderElect": False},
                "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 1000, "burst": 1000},
            }
        )
    )
    return place.start(
        "kube-scheduler",
        binary("kubernetes"),
        "kube-scheduler",
        f"--config={config}",
        "--secure-port=0",
    )
