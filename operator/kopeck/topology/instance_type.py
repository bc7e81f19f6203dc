"""What is known of an instance type, and what is not."""

from dataclasses import dataclass
from typing import Literal

from kopeck.topology.machine import Machine

Verdict = Literal["needed", "left to NCCL", "refused"]
"""Whether pods need a topology file: yes, no, or no because the type cannot train with NCCL."""


@dataclass(frozen=True, kw_only=True)
class InstanceType:
    """One row: facts that its sources say, None for what no source says."""

    names: tuple[str, ...]
    """As node labels have them; the same machine under several names."""
    cloud: str
    gpu: str
    gpus: int
    nic: str = "NIC"
    nics: int | None = None
    """Of those that training's traffic takes."""
    machine: Machine | None = None
    verdict: Verdict
    why: str
    """The verdict's reason, part of a sentence."""
    sources: tuple[str, ...]

    @property
    def unknown(self) -> tuple[str, ...]:
        """What no source says."""
        places = ("NUMA nodes", "PCIe switches", "link speeds", "bus ids")
        return (
            *(() if self.nics is not None else ("number of NICs",)),
            *(() if self.machine is not None else places),
        )
