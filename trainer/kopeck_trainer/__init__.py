"""The torch runtime of kopeck: compiled, sharded training with the settings of a TrainingJob.

Here belong the launcher (PID 1 of the training container), the ranks that it starts, and the
`report` library for programs with a training loop of their own. Importing it imports no torch, and
each member only once it is asked for: the launcher has to block signals before all else.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kopeck_trainer import report
    from kopeck_trainer.config import TrainConfig
    from kopeck_trainer.task import TrainingTask

__all__ = ["TrainConfig", "TrainingTask", "report"]

_MODULES = {"TrainConfig": "config", "TrainingTask": "task"}


def __getattr__(name: str) -> Any:
    if name == "report":
        return import_module("kopeck_trainer.report")
    if name in _MODULES:
        return getattr(import_module(f"kopeck_trainer.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
