import sys
from pathlib import Path

import pytest

from kopeck_trainer.builder import build_task
from kopeck_trainer.config import TrainConfig
from kopeck_trainer.errors import ConfigurationError
from kopeck_trainer.task import TrainingTask

BUILDERS = Path(__file__).parent / "builders"


@pytest.fixture(autouse=True)
def builders_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BUILDERS)
    monkeypatch.delitem(sys.modules, "toy", raising=False)


def test_a_builder_gets_the_configuration_and_returns_the_task() -> None:
    assert isinstance(build_task(TrainConfig(entrypoint="toy:build")), TrainingTask)


@pytest.mark.parametrize(
    ("entrypoint", "sentence"),
    [
        ("toy", "'toy' names no function; write package.module:function"),
        ("toy:", "'toy:' names no function; write package.module:function"),
        (
            "nowhere:build",
            "importing nowhere raised ModuleNotFoundError: No module named 'nowhere'",
        ),
        ("toy:nothing", "toy has no function nothing; name the function"),
        ("toy:not_a_function", "toy has no function not_a_function; name the function"),
        ("toy:build_built", "the model of toy:build_built is built already; give TrainingTask the"),
        ("toy:build_nothing", "toy:build_nothing returned None; return a kopeck_trainer."),
    ],
)
def test_a_builder_that_cannot_be_used_is_a_configuration_error(
    entrypoint: str, sentence: str
) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        build_task(TrainConfig(entrypoint=entrypoint))
    assert str(refusal.value).startswith(f"spec.entrypoint: {sentence}")
