"""What ranks leave for the launcher in a directory of their own: last report, reason of the end."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def report_file(run_directory: Path, local_rank: int) -> Path:
    return run_directory / f"rank-{local_rank}.json"


def error_file(run_directory: Path, local_rank: int) -> Path:
    return run_directory / f"rank-{local_rank}.error.json"


def leave_reason(message: str) -> None:
    """Why this rank ends, for the launcher."""
    directory = os.environ.get("KOPECK_RUN_DIR")
    if directory:
        local_rank = int(os.environ.get("LOCAL_RANK", "0"))
        write_json(error_file(Path(directory), local_rank), {"message": message})


def warm_file(run_directory: Path, local_rank: int) -> Path:
    """Exists once the rank has compiled what it needs."""
    return run_directory / f"rank-{local_rank}.warm"


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Replaced as a whole, so that a rank killed here leaves the one before."""
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(content))
    os.replace(temporary, path)  # noqa: PTH105  Path.replace hides that it is atomic


def read_json(path: Path) -> dict[str, Any]:
    """Empty where the rank left nothing."""
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
