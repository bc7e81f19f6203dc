"""Settings that people copy and that cost them: what each costs, in a sentence.

Only what the user wrote is judged, and not where it equals what the platform's vendor sets.
Variables: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

from kopeck.topology.platform import Platform


class Harm(IntEnum):
    """How bad a setting is; the worst is told first."""

    DATA = 3
    """What is trained may be wrong."""
    COST = 2
    """Speed, or the job itself."""
    NEEDLESS = 1
    """Nothing, today."""


@dataclass(frozen=True)
class SettingWarning:
    """One setting, and the sentence that says what it costs."""

    name: str
    value: str
    harm: Harm
    cost: str

    def __str__(self) -> str:
        return f"{self.name}={self.value}: {self.cost}"


_Judge = Callable[[str, Platform | None], "tuple[Harm, str] | None"]

_SIMPLE_ONLY = (frozenset({"simple"}), frozenset({"^ll", "ll128"}), frozenset({"^ll128", "ll"}))
_GCP = (Platform.GCP_TCPXO, Platform.GCP_GIB)
_LOSES_ITS_CHOICE = "for all sizes and collectives, where NCCL measures and chooses; remove it"


def setting_warnings(
    settings: Mapping[str, str], platform: Platform | None, vendor: Mapping[str, str]
) -> list[SettingWarning]:
    """Warnings of what the user sets, the worst first.

    `platform` is None while no node is known. `vendor` are the values that the platform's own
    configuration sets; on GCP they are in the pod only, so that its tuning is not judged here.
    """
    found = [
        SettingWarning(name, value, *verdict)
        for name, value in settings.items()
        if vendor.get(name) != value and (verdict := _verdict(name, value, platform))
    ]
    return sorted(found, key=lambda each: (-each.harm, each.name))


def _verdict(name: str, value: str, platform: Platform | None) -> tuple[Harm, str] | None:
    if name in _TUNING and platform in _GCP:
        return None
    judge = _JUDGES.get(name)
    return judge(value, platform) if judge else None


def _switch(cost: str) -> _Judge:
    """A variable that is harmless unless it is a number other than 0."""

    def judge(value: str, _: Platform | None) -> tuple[Harm, str] | None:
        return (Harm.COST, cost) if _number(value) else None

    return judge


def _forced(what: str) -> _Judge:
    """A variable that takes a choice away from NCCL; an empty one takes nothing."""

    def judge(value: str, _: Platform | None) -> tuple[Harm, str] | None:
        return (Harm.COST, f"forces {what} {_LOSES_ITS_CHOICE}") if value.strip() else None

    return judge


def _needless(why: str) -> _Judge:
    return lambda _value, _platform: (Harm.NEEDLESS, f"{why}; remove it")


def _protocol(value: str, platform: Platform | None) -> tuple[Harm, str] | None:
    if not value.strip():
        return None
    if frozenset(re.split(r"[\s,]+", value.strip().lower())) in _SIMPLE_ONLY:
        return None if platform == Platform.AWS_EFA else _forced("the protocol")(value, platform)
    corrupts = (
        "LL and LL128 rely on ordered delivery, which EFA does not promise: they can corrupt data,"
        " and the plugin does not override the user"
    )
    if platform == Platform.AWS_EFA:
        return Harm.DATA, f"{corrupts}; remove it"
    if platform is None:
        return Harm.DATA, f"forces the protocol; {corrupts}; remove it"
    return _forced("the protocol")(value, platform)


def _nvls(value: str, _: Platform | None) -> tuple[Harm, str] | None:
    if _number(value) == 0:
        cost = "all-reduce does without the NVSwitches' own sums: slower, and it takes more SMs"
        return Harm.COST, f"{cost}; keep it only where multicast cannot be allocated"
    if _number(value) == 1:
        return Harm.COST, "forced, where NCCL asks what GPUs and driver can do; remove it"
    return None


def _graph_file(value: str, platform: Platform | None) -> tuple[Harm, str] | None:
    if not value.strip():
        return Harm.COST, "NCCL opens the empty path and gives up; remove it"
    if platform == Platform.AZURE_NC:
        return None
    return Harm.COST, "rings and trees of another machine or NCCL version are taken as they are"


def _topo_file(value: str, platform: Platform | None) -> tuple[Harm, str] | None:
    if platform == Platform.AWS_EFA:
        cost = "the OFI plugin gives up its own topology and buffer sizes, also for an empty value"
        return Harm.COST, f"{cost}; remove it"
    if not value.strip():
        return Harm.COST, "hides the topology that a cloud puts into /var/run; remove it"
    return None


def _cpu_affinity(value: str, _: Platform | None) -> tuple[Harm, str] | None:
    if not _number(value):
        return None
    cost = "undoes the binding of ranks to their GPUs' CPUs, and since NCCL 2.29 fails the job"
    return Harm.COST, f"{cost} where the pod has no CPU of a GPU's NUMA node; remove it"


def _adapters(value: str, _: Platform | None) -> tuple[Harm, str] | None:
    text = value.strip()
    names = text.lstrip("^=")
    if text and not names:
        return Harm.COST, "names nothing: a lone ^ leaves out every adapter; remove it"
    if "=" in text[:2]:
        return None
    also = list(_also_matched(names))
    if not also:
        return None
    exact = text.replace(names, f"={names}")
    return Harm.COST, f"a prefix, which matches {also[0]} too; write {exact}"


def _also_matched(names: str) -> Iterator[str]:
    """Devices with one more digit. No name goes on after mlx5_0."""
    for entry in names.split(","):
        device = entry.strip().partition(":")[0]
        if re.fullmatch(r".+_[1-9]\d*", device):
            yield f"{device}0"


def _number(value: str) -> int | None:
    """As NCCL reads one; None where it falls back to its default."""
    try:
        return int(value.strip(), 0)
    except ValueError:
        return None


_BUFFERS = "the size of NCCL's buffers, and with it memory for each channel and peer"
_TUNING: Mapping[str, _Judge] = {
    "NCCL_ALGO": _forced("the algorithm"),
    "NCCL_PROTO": _protocol,
    "NCCL_BUFFSIZE": _forced(_BUFFERS),
    "NCCL_MIN_NCHANNELS": _forced("the number of channels, each of which takes an SM,"),
    "NCCL_MAX_NCHANNELS": _forced("the number of channels, and with it the bandwidth,"),
    "NCCL_NCHANNELS_PER_NET_PEER": _forced("the number of channels"),
    "NCCL_MIN_CTAS": _forced("the number of channels, each of which takes an SM,"),
    "NCCL_MAX_CTAS": _forced("the number of channels, and with it the bandwidth,"),
    "NCCL_NVLS_ENABLE": _nvls,
    "NCCL_GRAPH_FILE": _graph_file,
    "NCCL_TOPO_FILE": _topo_file,
    "NCCL_IGNORE_CPU_AFFINITY": _cpu_affinity,
    "NCCL_IB_HCA": _adapters,
}
_JUDGES: Mapping[str, _Judge] = {
    **_TUNING,
    "NCCL_P2P_DISABLE": _switch(
        "GPUs of a node talk through host memory and not through NVLink or PCIe, several times"
        " slower; for debugging only"
    ),
    "NCCL_SHM_DISABLE": _switch(
        "GPUs of a node that cannot reach each other directly go over the network; for debugging"
        " only"
    ),
    "NCCL_IB_DISABLE": _switch(
        "workers talk over TCP and not over InfiniBand or RoCE, through the CPU and without"
        " GPUDirect; for debugging only"
    ),
    "FI_EFA_USE_DEVICE_RDMA": _needless("the OFI plugin finds out by itself"),
    "FI_PROVIDER": _needless("the OFI plugin looks for the EFA provider by itself"),
}
