"""A TrainingJob's manifest from a file."""

import re
from pathlib import Path
from typing import Any

import yaml

from kopeck.api.errors import ConfigError
from kopeck.api.names import API_VERSION, JOB_NAME_PATTERN, KIND, MAX_JOB_NAME_LENGTH
from kopeck.api.trainingjob import TrainingJobSpec, parse_spec


def read_job(path: Path) -> tuple[str, TrainingJobSpec]:
    """Name and spec of the TrainingJob in a file.

    Raises ConfigError for a file that holds none, SpecError for a wrong field.
    """
    try:
        manifest = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        wrong = f"cannot be read ({' '.join(str(error).split())})"
        raise ConfigError(str(path), wrong, "name a YAML file with a TrainingJob") from None
    is_job = isinstance(manifest, dict) and manifest.get("kind") == KIND
    if not is_job or manifest.get("apiVersion") != API_VERSION:
        wrong = f"holds no {KIND} of {API_VERSION}"
        raise ConfigError(str(path), wrong, "name a file with exactly one")
    return _name(path, manifest.get("metadata")), parse_spec(manifest.get("spec") or {})


def _name(path: Path, metadata: Any) -> str:
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not name:
        raise ConfigError(str(path), "metadata.name is missing", "give the job a name")
    is_text = isinstance(name, str) and len(name) <= MAX_JOB_NAME_LENGTH
    if is_text and re.fullmatch(JOB_NAME_PATTERN, name):
        return str(name)
    raise ConfigError(
        str(path),
        "metadata.name is not one that a cluster would take",
        f"begin with a letter, and use at most {MAX_JOB_NAME_LENGTH} lower-case letters, digits"
        " and '-'",
    )
