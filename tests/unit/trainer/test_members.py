import kopeck_trainer
from kopeck_trainer import report


def test_the_public_names_stay() -> None:
    assert kopeck_trainer.__all__ == ["TrainConfig", "TrainingTask", "report"]
    assert callable(report.step)
    assert callable(report.phase)
