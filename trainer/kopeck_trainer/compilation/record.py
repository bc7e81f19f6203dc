"""What `auto` measured and chose. The trials are remembered for the next attempt.

Everything that changes how fast a mode is, or whether it works, is in the key; what only changes
how long training is, or where it is saved, is not.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from kopeck_trainer.compilation.policy import Trial
from kopeck_trainer.config import CompileMode, TrainConfig, TrainingConfig
from kopeck_trainer.optimizer_step import OptimizerStep
from kopeck_trainer.run_directory import read_json, write_json

Key = Mapping[str, Any]

DRIVER_VERSION = Path("/proc/driver/nvidia/version")
"""By NVIDIA's kernel module."""


@dataclass(frozen=True, kw_only=True)
class Decision:
    """`mode` is what was chosen; None while modes are tried, or where a trial ended its process."""

    trials: tuple[Trial, ...]
    mode: CompileMode | None = None


def decision_key(
    config: TrainConfig, training: TrainingConfig, step: OptimizerStep, batch: Any
) -> Key:
    """What the decision holds for."""
    return {
        "torch": torch.__version__,
        "triton": _version("triton"),
        "kopeck": _version("kopeck"),
        "device": _device(step.device),
        "entrypoint": config.entrypoint,
        "parameters": config.parameters,
        "model": [(name, list(each.shape)) for name, each in step.model.named_parameters()],
        "batch": [_form(leaf) for leaf in tree_leaves(batch)],
        "ranks": step.ranks,
        "training": _lasting(training),
    }


def recalled(folder: Path, key: Key) -> tuple[Trial, ...]:
    """The trials that are known for `key`; a record that cannot be read says nothing."""
    content = read_json(_file(folder, key))
    try:
        return tuple(Trial(**each) for each in content.get("trials", ()))
    except TypeError:
        return ()


def remember(folder: Path, key: Key, decision: Decision) -> None:
    """Replaced as a whole. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(_file(folder, key), {**asdict(decision), "key": key})


def _file(folder: Path, key: Key) -> Path:
    text = json.dumps(key, sort_keys=True, default=str)
    return folder / f"decision-{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"


def _lasting(training: TrainingConfig) -> dict[str, Any]:
    passing = {"steps", "samples", "seed", "checkpoint", "compile", "fails_on_nonfinite_loss"}
    settings = {name: each for name, each in asdict(training).items() if name not in passing}
    return settings | {"onGraphBreak": training.compile.fails_on_graph_break}


def _form(leaf: Any) -> str:
    return f"{leaf.dtype} {list(leaf.shape)}" if isinstance(leaf, Tensor) else type(leaf).__name__


def _device(device: torch.device) -> dict[str, Any]:
    if device.type != "cuda":
        return {"name": torch.backends.cpu.get_cpu_capability(), "threads": torch.get_num_threads()}
    return {
        "name": torch.cuda.get_device_name(device),
        "cuda": torch.version.cuda,
        "driver": _first_line(DRIVER_VERSION),
    }


def _first_line(path: Path) -> str | None:
    """None where there is no such file."""
    try:
        return path.read_text().partition("\n")[0]
    except OSError:
        return None


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
