"""A machine as a folder: what proc, sys and dev of a pod would show."""

from ipaddress import ip_address
from pathlib import Path

from kopeck_trainer.nccl.environment import nccl_environment
from kopeck_trainer.nccl.machine import Machine

TWO_INTERFACES = {
    "eth0": {ip_address("10.0.0.5"), ip_address("fd00::5")},
    "ib0": {ip_address("192.168.0.5")},
}

AZURE_GPUS = ("0001:00:00.0", "0002:00:00.0")

POD_CPUS = frozenset({0, 1, 2, 3})


def a_file(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def with_gpus(root: Path, *bus_ids: str) -> Path:
    for minor, bus_id in enumerate(bus_ids or AZURE_GPUS):
        with_gpu_of_another_pod(root, bus_id, minor)
        a_file(root / f"dev/nvidia{minor}")
    return root


def with_gpu_of_another_pod(root: Path, bus_id: str, minor: int) -> Path:
    """The driver shows it to all containers; its device file is in that pod alone."""
    said = f"Model: \t\t NVIDIA H200\nGPU UUID: \t GPU-{minor}f0e\nBus Location: \t {bus_id}\n"
    folder = root / "proc/driver/nvidia/gpus" / bus_id
    a_file(folder / "information", f"{said}Device Minor: \t {minor}\n")
    return root


def with_numa_node(root: Path, number: int, cpus: str) -> Path:
    a_file(root / f"sys/devices/system/node/node{number}/cpulist", f"{cpus}\n")
    return root


def on_numa_node(root: Path, gpu: str, number: int) -> Path:
    """-1 is what most virtual machines say."""
    a_file(root / "sys/bus/pci/devices" / gpu / "numa_node", f"{number}\n")
    return root


def with_adapter(root: Path, name: str, layer: str, state: str = "4: ACTIVE") -> Path:
    port = root / "sys/class/infiniband" / name / "ports/1"
    a_file(port / "state", f"{state}\n")
    a_file(port / "link_layer", f"{layer}\n")
    return root


def with_vendor(root: Path, vendor: str) -> Path:
    a_file(root / "sys/class/dmi/id/sys_vendor", f"{vendor}\n")
    return root


def a_topology(path: Path, *bus_ids: str) -> Path:
    devices = "".join(f'    <pci busid="{each}" class="0x030200"/>\n' for each in bus_ids)
    return a_file(path, f'<system version="1">\n  <cpu numaid="0">\n{devices}  </cpu>\n</system>\n')


def environment_on(
    root: Path, workers: int = 2, **environ: str
) -> tuple[dict[str, str], list[str]]:
    """What the ranks get, and what was said."""
    said: list[str] = []
    machine = Machine(root=root, addresses=TWO_INTERFACES, cpus=POD_CPUS)
    found = nccl_environment(environ, workers=workers, machine=machine, say=said.append)
    return found, said
