"""The environment of the ranks, with what NCCL and gloo need to find the other workers."""

from collections.abc import Callable, Mapping
from pathlib import Path

from kopeck_trainer.nccl.adapters import adapters_to_name, has_rdma_device
from kopeck_trainer.nccl.conf_files import variables_of_files
from kopeck_trainer.nccl.cpu_affinity import IGNORE_AFFINITY, gpu_without_cpu
from kopeck_trainer.nccl.gpus import gpu_bus_ids
from kopeck_trainer.nccl.interfaces import Address, interface_to_name
from kopeck_trainer.nccl.locked_memory import raise_limit, why_too_little
from kopeck_trainer.nccl.machine import Machine
from kopeck_trainer.nccl.topology_file import TOPO_FILE, numa_nodes_of_file, why_unusable
from kopeck_trainer.nccl.vendor_profile import ProfileError, profile_script, with_profile

Say = Callable[[str], None]

POD_ADDRESS = "KOPECK_POD_IP"
SOCKET_INTERFACE, GLOO_INTERFACE = "NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"
ADAPTERS = "NCCL_IB_HCA"

# Their plugins and scripts choose interfaces and adapters themselves.
_VENDORS_THAT_CHOOSE = ("Amazon EC2", "Google")


def nccl_environment(
    environ: Mapping[str, str], *, workers: int, machine: Machine, say: Say
) -> dict[str, str]:
    """`environ` as the ranks should have it. Each change is said in one sentence.

    What the user or one of NCCL's files sets stays. Raises ConfigurationError where no rank could
    start: NCCL would stop at its topology file, or the vendor's script does not end.
    """
    root = machine.root
    gpus = gpu_bus_ids(root)
    wanted = dict(environ)
    if gpus and workers > 1:
        wanted = _with_vendor_profile(wanted, root, say)
        _check_locked_memory(root, say)
    if gpus:
        wanted = _without_wrong_topology(wanted, gpus, root, say)
    if IGNORE_AFFINITY not in environ:
        by_file = numa_nodes_of_file(wanted, root)
        wanted |= _bound_to_cpus(
            wanted, gpu_without_cpu(gpus, machine.cpus, by_file, root), root, say
        )
    if workers == 1 or _chooses_itself(root):
        return wanted
    # What a file tells NCCL comes too late for gloo.
    taken = wanted.keys() | variables_of_files(wanted, root).keys() - {GLOO_INTERFACE}
    added = _interface(wanted, machine.addresses) | (_adapters(root) if gpus else {})
    for name, value in added.items():
        if name not in taken:
            say(f"{name}={value}: {_REASONS[name]}")
            wanted[name] = value
    return wanted


_REASONS = {
    SOCKET_INTERFACE: "of several interfaces, the one that the pod's address is on",
    GLOO_INTERFACE: "of several interfaces, the one that the pod's address is on",
    ADAPTERS: "the InfiniBand adapters, without the Ethernet ones beside them",
}


def _without_wrong_topology(
    environ: dict[str, str], gpus: list[str], root: Path, say: Say
) -> dict[str, str]:
    """What a file of NCCL names comes into force where the environment names nothing."""
    file = environ.get(TOPO_FILE)
    if file and (why := why_unusable(file, gpus, root)):
        say(f"{TOPO_FILE}={file} is unset: {why}")
        environ = {name: value for name, value in environ.items() if name != TOPO_FILE}
    if TOPO_FILE in environ:
        return environ
    file = variables_of_files(environ, root).get(TOPO_FILE)
    if file and (why := why_unusable(file, gpus, root)):
        say(f"{TOPO_FILE}={file} of NCCL's configuration file is set to nothing: {why}")
        return environ | {TOPO_FILE: ""}
    return environ


def _with_vendor_profile(environ: dict[str, str], root: Path, say: Say) -> dict[str, str]:
    script = profile_script(root)
    if script is None:
        return environ
    try:
        return with_profile(script, environ)
    except ProfileError as error:
        say(f"{error}; NCCL starts without its settings")
        return environ


def _check_locked_memory(root: Path, say: Say) -> None:
    if has_rdma_device(root) and (why := why_too_little(raise_limit(), root / "proc/self/status")):
        say(why)


def _bound_to_cpus(
    environ: Mapping[str, str], gpu: str | None, root: Path, say: Say
) -> dict[str, str]:
    """A vendor's wish to ignore the pod's CPUs is turned off where it would end the job."""
    value = environ.get(IGNORE_AFFINITY) or variables_of_files(environ, root).get(IGNORE_AFFINITY)
    if gpu is None or value in (None, "", "0"):
        return {}
    say(f"{IGNORE_AFFINITY}=0: the pod has no CPU beside the GPU at {gpu}")
    return {IGNORE_AFFINITY: "0"}


def _chooses_itself(root: Path) -> bool:
    try:
        vendor = (root / "sys/class/dmi/id/sys_vendor").read_text().strip()
    except OSError:
        return False
    return vendor in _VENDORS_THAT_CHOOSE


def _interface(environ: Mapping[str, str], addresses: Mapping[str, set[Address]]) -> dict[str, str]:
    """Exactly that one for NCCL, to which a bare name is a prefix; gloo knows no `=`."""
    name = interface_to_name(environ.get(POD_ADDRESS, ""), addresses)
    return {SOCKET_INTERFACE: f"={name}", GLOO_INTERFACE: name} if name else {}


def _adapters(root: Path) -> dict[str, str]:
    names = adapters_to_name(root)
    return {ADAPTERS: f"={','.join(names)}"} if names else {}
