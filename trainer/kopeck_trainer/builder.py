"""From `spec.entrypoint` to the user's TrainingTask."""

import importlib
from collections.abc import Callable
from typing import Any

from kopeck_trainer.config import TrainConfig
from kopeck_trainer.errors import ConfigurationError
from kopeck_trainer.task import TrainingTask

FIELD = "spec.entrypoint"


def build_task(config: TrainConfig) -> TrainingTask:
    """The task that the builder makes of `config`.

    Raises ConfigurationError where there is no such builder or it returns something else. What
    the builder itself raises is the user's and passes through.
    """
    entrypoint = config.entrypoint or ""
    task = _builder(entrypoint)(config)
    if not isinstance(task, TrainingTask):
        raise ConfigurationError(
            FIELD, f"{entrypoint} returned {_kind(task)}", "return a kopeck_trainer.TrainingTask"
        )
    if not isinstance(task.model, type) and hasattr(task.model, "named_parameters"):
        raise ConfigurationError(
            FIELD,
            f"the model of {entrypoint} is built already",
            "give TrainingTask the function that builds it",
        )
    if len(task.dataset) == 0:
        raise ConfigurationError(FIELD, f"the dataset of {entrypoint} is empty", "add samples")
    return task


def _builder(entrypoint: str) -> Callable[[TrainConfig], Any]:
    module_name, colon, name = entrypoint.partition(":")
    if not (module_name and colon and name):
        raise ConfigurationError(
            FIELD, f"{entrypoint!r} names no function", "write package.module:function"
        )
    builder: Callable[[TrainConfig], Any] | None = getattr(_module(module_name), name, None)
    if not callable(builder):
        raise ConfigurationError(
            FIELD,
            f"{module_name} has no function {name}",
            "name the function that takes the configuration and returns a TrainingTask",
        )
    return builder


def _module(name: str) -> object:
    try:
        return importlib.import_module(name)
    except Exception as error:  # noqa: BLE001  the user's module may raise anything
        raise ConfigurationError(
            FIELD,
            f"importing {name} raised {type(error).__name__}: {error}",
            "name a module that the image or PYTHONPATH has and that imports",
        ) from None


def _kind(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
