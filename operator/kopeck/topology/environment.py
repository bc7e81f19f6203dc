"""What NCCL needs in the pods of a node: help where pods lose what the host knows, no more.

One function for each platform, each sentence with its reason. Sources are in
docs/nccl-environment.md. The user's own values, resources and mounts win.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kopeck.topology.library import find_instance_type
from kopeck.topology.needs import ConfigMapMount, Missing, Need, Note, PodNeeds, TopologyFile
from kopeck.topology.node import NodeFacts
from kopeck.topology.platform import Cloud, NodePlatform, Platform, platform_of
from kopeck.topology.pod import PodView
from kopeck.topology.resources import (
    EFA_RESOURCE,
    HUGE_PAGES_RESOURCE,
    RDMA_PREFIX,
    efa_request,
    huge_pages_request,
    rdma_request,
    rdma_resources,
)

TOPO_FILE = "NCCL_TOPO_FILE"
TOPOLOGY_PATH = "/etc/kopeck/topology.xml"
"""Where pods have a topology file that kopeck brings; the launcher knows the folder as kopeck's."""
GIB_SCRIPT = "/usr/local/gib/scripts/set_nccl_env.sh"
TCPXO_SCRIPT = "/usr/local/nvidia/lib64/nccl-env-profile.sh"
CONF_FILE = "/etc/nccl.conf"

_INTERFACES = "networking.gke.io/interfaces"
_TCPXO_DAEMON = "tcpxo-daemon"
_APERTURE_DEVICES = "/dev/aperture_devices"


@dataclass(frozen=True, kw_only=True)
class _Case:
    node: NodeFacts
    found: NodePlatform
    pod: PodView
    workers: int
    brings_topology: bool

    @property
    def has_claimed_fabric(self) -> bool:
        """A claim beside that of the ComputeDomain, which may be of NICs."""
        return self.pod.claims > self.found.is_multi_node_nvlink


def pod_needs(
    node: NodeFacts,
    pod: PodView,
    *,
    workers: int,
    platform: Platform | None = None,
    brings_topology: bool = True,
) -> PodNeeds:
    """What the pods of a job with so many workers need on such a node.

    `platform` is the user's word on it, None to go by the node. Without `brings_topology` the
    user wants no topology file of the library.
    """
    found = platform_of(node)
    if platform is not None:
        found = replace(found, platform=platform, reason="spec.nccl.platform")
    if not pod.gpus:
        return PodNeeds(found, (Note("the pod has no NVIDIA GPU: NCCL is not used"),))
    case = _Case(node=node, found=found, pod=pod, workers=workers, brings_topology=brings_topology)
    needs = [*_topology(case), *_of_multi_node_nvlink(case), *_of_several_pods_a_node(case)]
    if workers == 1:
        needs.append(Note("one worker: no other node is reached, so no fabric is requested"))
    else:
        needs += [*_fabric(case), *_locked_memory(case), *_interfaces(case)]
    return PodNeeds(found, tuple(needs))


def _topology(case: _Case) -> Iterator[Need]:
    if case.found.platform == Platform.AWS_EFA:
        yield Note(
            f"{TOPO_FILE} is not set: the OFI plugin ships or synthesises its own topology and"
            " sets buffer sizes, and gives up both once the variable exists, even empty"
        )
    elif case.found.is_multi_node_nvlink:
        yield Note(f"{TOPO_FILE} is not set: a file of one node breaks NVLink between nodes")
    elif case.found.platform == Platform.AZURE_ND:
        yield from _azure_topology(case)


def _azure_topology(case: _Case) -> Iterator[Need]:
    instance_type = case.node.instance_type
    known = find_instance_type(instance_type)
    if known is None or known.verdict != "needed":
        yield Note(f"{TOPO_FILE} is not set: the hosts of {instance_type} have no topology file")
    elif case.pod.sets(TOPO_FILE):
        yield Note(f"{TOPO_FILE} is the user's own")
    elif not case.brings_topology:
        yield Note("kopeck brings no topology file: spec.nccl.topology is not auto")
    else:
        yield TopologyFile(
            TOPO_FILE,
            TOPOLOGY_PATH,
            known,
            "pods do not see the host's /etc/nccl.conf, and without the file's PCIe bridges NCCL"
            " turns GPUDirect RDMA off",
        )


def _of_multi_node_nvlink(case: _Case) -> Iterator[Need]:
    if case.found.is_multi_node_nvlink and case.workers > 1 and not case.pod.claims:
        yield Missing(
            "the pod claims no ComputeDomain, so NVLink ends at its node; create one and add its"
            " claim to resourceClaims and to the container trainer in spec.workers.template"
        )


def _of_several_pods_a_node(case: _Case) -> Iterator[Need]:
    if case.workers > 1 and 0 < case.pod.gpus < case.node.gpus:
        yield Note(
            f"the pod has {case.pod.gpus} of {case.node.gpus} GPUs: two pods of a job on one node"
            " share neither NVLink nor shared memory; prefer one pod for each node"
        )


def _fabric(case: _Case) -> Iterator[Need]:
    match case.found.platform:
        case Platform.AWS_EFA:
            yield from _of_efa(case)
        case Platform.AZURE_ND | Platform.AZURE_NC | Platform.COREWEAVE | Platform.RDMA:
            yield from _of_rdma(case)
        case Platform.GCP_TCPXO:
            yield from _of_tcpxo(case)
        case Platform.GCP_GIB:
            yield from _of_gib(case)
        case Platform.OCI:
            yield from _of_oci(case)
        case Platform.OTHER:
            yield Note("no fabric is known: NCCL chooses its transport itself")


def _of_efa(case: _Case) -> Iterator[Need]:
    wanted = efa_request(case.node, case.pod.gpus)
    if EFA_RESOURCE in case.pod.resources:
        yield Note("the user requests EFA interfaces: nothing is added to them")
    elif wanted:
        yield wanted
    elif not case.has_claimed_fabric:
        yield Missing(
            f"the node offers no {EFA_RESOURCE}, and without it NCCL uses TCP; install the AWS EFA"
            " device plugin, or claim the interfaces by its DRA driver"
        )
    yield from _huge_pages(case)


def _huge_pages(case: _Case) -> Iterator[Need]:
    wanted = huge_pages_request(case.node, case.pod.gpus)
    if wanted is None or HUGE_PAGES_RESOURCE in case.pod.resources:
        return
    if case.pod.resources.isdisjoint({"cpu", "memory"}):
        yield Note("no huge pages: Kubernetes grants them only beside requests of cpu or memory")
    else:
        yield wanted


def _of_rdma(case: _Case) -> Iterator[Need]:
    offered = rdma_resources(case.node.allocatable)
    if any(each.startswith(RDMA_PREFIX) for each in case.pod.resources):
        yield Note("the user requests RDMA devices: nothing is added to them")
    elif len(offered) == 1:
        yield rdma_request(case.node, offered[0], case.pod.gpus)
    elif offered:
        yield Missing(
            f"the node offers {' and '.join(offered)}; write those that lead to the other workers"
            " into spec.workers.resources.limits"
        )
    elif case.found.platform != Platform.AZURE_NC and not case.pod.is_on_host_network:
        yield Missing(
            "the node offers no resource under rdma/, and without a device NCCL uses TCP; install"
            " an RDMA or SR-IOV device plugin, or request its resource by another name yourself"
        )


def _of_tcpxo(case: _Case) -> Iterator[Need]:
    yield Note(f"the launcher takes over what {TCPXO_SCRIPT} sets: its values are the vendor's")
    pod = case.pod
    if _TCPXO_DAEMON not in pod.containers:
        yield Missing(f"the template has no container {_TCPXO_DAEMON}, which moves the data")
    if f"devices.gke.io/container.{_TCPXO_DAEMON}" not in pod.annotations:
        yield Missing(
            f"the template has no annotation devices.gke.io/container.{_TCPXO_DAEMON}, by which"
            " the daemon gets the GPUs"
        )
    for path, what in (
        (_APERTURE_DEVICES, "the devices through which the daemon reaches GPU memory"),
        (TCPXO_SCRIPT, "the plugin's libraries (/home/kubernetes/bin/nvidia on the host)"),
    ):
        if not pod.mounts(path):
            yield Missing(f"the template mounts nothing at {path}: {what}")
    yield from _gke_interfaces(case)


def _of_gib(case: _Case) -> Iterator[Need]:
    yield Note(f"the launcher takes over what {GIB_SCRIPT} sets: its values are the vendor's")
    if not case.pod.mounts(GIB_SCRIPT):
        yield Missing(
            "the template mounts nothing at /usr/local/gib: the plugin's libraries"
            " (/home/kubernetes/bin/gib on the host)"
        )
    yield from _gke_interfaces(case)


def _gke_interfaces(case: _Case) -> Iterator[Need]:
    pod = case.pod
    has_nics = _INTERFACES in pod.annotations or pod.is_on_host_network or case.has_claimed_fabric
    if not has_nics:
        yield Missing(f"the template has no annotation {_INTERFACES}, by which pods get the NICs")


def _of_oci(case: _Case) -> Iterator[Need]:
    if case.pod.mounts(CONF_FILE):
        yield Note(f"{CONF_FILE} is the user's own")
        return
    shape = case.node.instance_type.lower().replace(".", "-")
    yield ConfigMapMount(
        "default",
        f"oci-nccl-parameters-{shape}",
        "nccl.conf",
        CONF_FILE,
        "the provider's values for the shape, which NCCL reads after the environment",
    )


def _locked_memory(case: _Case) -> Iterator[Need]:
    if case.found.platform not in (Platform.GCP_TCPXO, Platform.OTHER):
        yield Note(
            "RDMA locks memory, for which Kubernetes has no field: nodes need"
            " LimitMEMLOCK=infinity for their container runtime; the launcher checks it"
        )


def _interfaces(case: _Case) -> Iterator[Need]:
    if case.found.cloud in (Cloud.AWS, Cloud.GCP):
        return
    yield Note(
        "where the pod has several interfaces the launcher sets NCCL_SOCKET_IFNAME and"
        " GLOO_SOCKET_IFNAME to that of the pod's address, since NCCL tries ib* first"
    )
