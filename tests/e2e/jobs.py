"""Jobs that train for real on one CPU per worker."""

from pathlib import Path
from typing import Any

import yaml

EXAMPLE = Path("examples/byte-llama.yaml")


def the_example() -> dict[str, Any]:
    manifest: dict[str, Any] = yaml.safe_load(EXAMPLE.read_text())
    return manifest


def a_small_training(name: str = "small", **training: Any) -> dict[str, Any]:
    """The example with a tiny model, eager, and a checkpoint every few steps."""
    job = the_example()
    job["metadata"] = {"name": name}
    job["spec"]["parameters"] |= {"dim": 32, "layers": 2, "heads": 2, "sequenceLength": 32}
    job["spec"]["runPolicy"] = {"backoffSeconds": 0}
    job["spec"]["training"] |= {
        "steps": 200,
        "compile": {"mode": "off"},
        "checkpoint": {"path": "/checkpoints", "everySteps": 20},
    } | training
    return job
