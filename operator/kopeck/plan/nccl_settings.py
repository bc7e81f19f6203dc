"""What the user sets for NCCL, and what is to be said of it."""

from collections.abc import Mapping
from typing import Any

from kopeck.api.json_shapes import mapping, mappings
from kopeck.api.names import TRAINER_CONTAINER
from kopeck.api.trainingjob import TrainingJobSpec
from kopeck.topology.environment import TOPO_FILE, TOPOLOGY_PATH
from kopeck.topology.harmful_settings import SettingWarning, setting_warnings
from kopeck.topology.node import NodeFacts
from kopeck.topology.platform import Platform, platform_of


def nccl_warnings(
    spec: TrainingJobSpec, platform: str | None, vendor: Mapping[str, str]
) -> list[SettingWarning]:
    """Of spec.nccl and the template's environment, the worst first; none without GPUs.

    `platform` is that of the nodes. None where they do not tell: then what the job asks of its
    nodes is taken for it. `vendor` is what the provider's own file sets.
    """
    if not spec.workers.gpus_per_worker:
        return []
    known = Platform(platform) if platform else _platform(spec)
    return setting_warnings(_settings(spec), known, vendor)


def _settings(spec: TrainingJobSpec) -> dict[str, str]:
    """The template is merged over the rest, so that its values count."""
    own_file = {TOPO_FILE: TOPOLOGY_PATH} if spec.nccl.topology_config_map else {}
    return (
        own_file
        | spec.nccl.env
        | {
            str(each["name"]): str(each["value"])
            for each in mappings(_trainer(spec).get("env"))
            if {"name", "value"} <= each.keys()
        }
    )


def _platform(spec: TrainingJobSpec) -> Platform | None:
    """By what the job asks of its nodes; None where that does not tell."""
    wanted = NodeFacts(
        labels=mapping(spec.workers.template_spec.get("nodeSelector")),
        allocatable={name: str(amount) for name, amount in _limits(spec).items()},
    )
    found = platform_of(wanted).platform
    return found if found != Platform.OTHER or wanted.instance_type else None


def _limits(spec: TrainingJobSpec) -> Mapping[str, Any]:
    resources = spec.workers.resources
    return resources.limits if resources else {}


def _trainer(spec: TrainingJobSpec) -> Mapping[str, Any]:
    containers = spec.workers.template_spec.get("containers", [])
    return next((each for each in containers if each["name"] == TRAINER_CONTAINER), {})
