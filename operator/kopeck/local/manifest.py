"""A TrainingJob's manifest from a file."""

from pathlib import Path

import yaml

from kopeck.api.errors import ConfigError
from kopeck.api.names import API_VERSION, KIND
from kopeck.api.trainingjob import TrainingJobSpec, parse_spec


def read_job(path: Path) -> tuple[str, TrainingJobSpec]:
    """Name and spec of the TrainingJob in a file.

    Raises ConfigError for a file that holds none, SpecError for a wrong field.
    """
    try:
        manifest = yaml.safe_load(path.read_text())
    except (OSError, yaml.YAMLError) as error:
        wrong = f"cannot be read ({' '.join(str(error).split())})"
        raise ConfigError(str(path), wrong, "name a YAML file with a TrainingJob") from None
    is_job = isinstance(manifest, dict) and manifest.get("kind") == KIND
    if not is_job or manifest.get("apiVersion") != API_VERSION:
        wrong = f"holds no {KIND} of {API_VERSION}"
        raise ConfigError(str(path), wrong, "name a file with exactly one")
    name = (manifest.get("metadata") or {}).get("name")
    if not isinstance(name, str) or not name:
        raise ConfigError(str(path), "metadata.name is missing", "give the job a name")
    return name, parse_spec(manifest.get("spec") or {})
