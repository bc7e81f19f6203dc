"""The model of `llama`, whose first weights are gathered when `spec.parameters.gathered` says."""

from collections.abc import Callable
from typing import Any

from kopeck_trainer import TrainConfig, TrainingTask, working_weights
from kopeck_trainer.early_gather import EarlyGather
from tests.gpu import llama


class Stale(EarlyGather):
    """Gathers them before their update, as a fault would."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self._masters = set()


WHEN: dict[str, Callable[[Any], EarlyGather | None]] = {
    "early": EarlyGather,
    "late": lambda _model: None,  # in the forward that needs them
    "stale": Stale,
}


def build(config: TrainConfig) -> TrainingTask:
    when = WHEN[config.parameters.pop("gathered")]
    working_weights.EarlyGather = when  # type: ignore[assignment,misc]
    return llama.build(config)
