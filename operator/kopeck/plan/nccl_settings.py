"""What the user sets for NCCL, and what is to be said of it before any node is known."""

from collections.abc import Mapping
from typing import Any

from kopeck.api.names import TRAINER_CONTAINER
from kopeck.api.trainingjob import TrainingJobSpec
from kopeck.topology.harmful_settings import SettingWarning, setting_warnings
from kopeck.topology.node import NodeFacts
from kopeck.topology.platform import Platform, platform_of


def nccl_warnings(spec: TrainingJobSpec) -> list[SettingWarning]:
    """Of spec.nccl.env and the template's environment, the worst first; none without GPUs."""
    if not spec.workers.gpus_per_worker:
        return []
    return setting_warnings(_settings(spec), _platform(spec), vendor={})


def _settings(spec: TrainingJobSpec) -> dict[str, str]:
    """The template is merged over the rest, so that its values count."""
    return spec.nccl.env | {
        str(each["name"]): str(each["value"])
        for each in _trainer(spec).get("env") or []
        if isinstance(each, Mapping) and {"name", "value"} <= each.keys()
    }


def _platform(spec: TrainingJobSpec) -> Platform | None:
    """By what the job asks of its nodes; None where that does not tell."""
    selector = spec.workers.template_spec.get("nodeSelector")
    wanted = NodeFacts(
        labels=selector if isinstance(selector, Mapping) else {},
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
