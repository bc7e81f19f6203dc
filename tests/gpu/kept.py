"""Results on GPUs, kept with the command, the device and the date."""

import json
import operator
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

RESULTS = Path(__file__).parent / "results"
RELATIONS = {">=": operator.ge, "<=": operator.le, "==": operator.eq}


def keep(name: str, gpus: int, content: dict[str, Any]) -> int:
    """Write and print it, on one line. The exit code: 1 where a bar is not held."""
    result = {
        "bench": name,
        "command": _command(),
        "device": f"{gpus} × {torch.cuda.get_device_name()}, torch {torch.__version__}",
        "date": str(datetime.now(UTC).date()),
        **content,
    }
    (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result))
    return 0 if all(bar["held"] for bar in content["bars"].values()) else 1


def _command() -> str:
    """Folders by their names: where they are on a machine is nobody else's."""
    words = [Path(word).name for word in sys.argv[1:]]
    return " ".join(["python", "-m", f"tests.gpu.{Path(sys.argv[0]).stem}", *words])


def bar(value: float, relation: str, bound: float) -> dict[str, Any]:
    held = RELATIONS[relation](value, bound)
    return {"value": float(f"{value:.5g}"), "op": relation, "bar": bound, "held": held}


def say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)
