"""Jobs that train for real on one CPU per worker."""

from pathlib import Path
from typing import Any

import yaml

EXAMPLE = Path("examples/byte-llama.yaml")
RECORDING = Path("tests/e2e/recording.py")
_PYTHON_PATH = "/opt/recording:/opt/kopeck:/opt/kopeck/examples:/site"


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


def a_recorded_training(name: str = "recorded", **training: Any) -> dict[str, Any]:
    """A small training that leaves the numbers of its samples beside its checkpoints."""
    job = a_small_training(name, **training)
    job["spec"]["entrypoint"] = "recording:build"
    template = job["spec"]["workers"]["template"]["spec"]
    template["volumes"].append({"name": "recording", "configMap": {"name": "recording"}})
    trainer = template["containers"][0]
    trainer["volumeMounts"].append({"name": "recording", "mountPath": "/opt/recording"})
    trainer["env"] = [{"name": "PYTHONPATH", "value": _PYTHON_PATH}]
    return job


def recording_module() -> dict[str, Any]:
    """The ConfigMap with the module of the recorded training."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "recording"},
        "data": {"recording.py": RECORDING.read_text()},
    }
